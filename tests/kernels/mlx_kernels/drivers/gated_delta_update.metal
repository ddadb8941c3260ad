#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/gated_delta_update.h"

#define instantiate_gated_delta(name, type)                                     \
  instantiate_kernel("gated_delta_fused_chunk_" #name, gated_delta_fused_chunk, \
                     type, 64, 64, 2, 4, 8)                                     \
  instantiate_kernel("gated_delta_seq_" #name, gated_delta_seq, type, 64, 64, 2, 4, 16)

instantiate_gated_delta(float, float)
instantiate_gated_delta(bfloat, bfloat16_t)
