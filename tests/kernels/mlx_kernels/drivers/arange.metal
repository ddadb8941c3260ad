#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/arange.h"

instantiate_kernel("arange_float", arange, float)
instantiate_kernel("arange_half", arange, half)
instantiate_kernel("arange_bfloat", arange, bfloat16_t)
instantiate_kernel("arange_int64", arange, int64_t)
instantiate_kernel("arange_uchar", arange, uint8_t)
