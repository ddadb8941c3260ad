#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/attn/kernels/steel_attention_nax.h"

instantiate_kernel("attention_nax_half", attention_nax, half, 64, 32, 64, 64, 4, 1, bool, float)
