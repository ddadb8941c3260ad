#include "mlx/backend/metal/kernels/dot.h"

instantiate_kernel("dot_product_float", dot_product, float, 32, 256, 8)
instantiate_kernel("dot_product_half", dot_product, half, 32, 256, 8)
instantiate_kernel("dot_product_bfloat", dot_product, bfloat16_t, 32, 256, 8)
