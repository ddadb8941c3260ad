#include "mlx/backend/metal/kernels/gated_delta_update_vjp.h"

instantiate_kernel("gated_delta_vjp_seq_float", gated_delta_vjp_seq, float, 64, 64, 2, 4, 16)
instantiate_kernel("gated_delta_vjp_seq_bfloat", gated_delta_vjp_seq, bfloat16_t, 64, 64, 2, 4, 16)
