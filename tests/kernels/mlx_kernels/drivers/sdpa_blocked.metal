#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/sdpa_blocked.h"

#define instantiate_sdpa_blocked(name, type)                                          \
  instantiate_kernel("sdpa_blocked_scale_copy_" #name, sdpa_blocked_scale_copy, type) \
  instantiate_kernel("sdpa_blocked_causal_mask_" #name, sdpa_blocked_causal_mask, type)

instantiate_sdpa_blocked(float, float)
instantiate_sdpa_blocked(half, half)
instantiate_sdpa_blocked(bfloat, bfloat16_t)
