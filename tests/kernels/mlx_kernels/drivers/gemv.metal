#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/gemv.h"

// The blocks that MLX chooses for small, tall and wide matrices: BM, BN, SM, SN, TM, TN.
#define instantiate_gemv(name, type)                                                        \
  instantiate_kernel("gemv_" #name "_row", gemv, type, 1, 8, 1, 32, 4, 4, false, false)     \
  instantiate_kernel("gemv_" #name "_tall", gemv, type, 8, 1, 1, 32, 4, 4, false, false)    \
  instantiate_kernel("gemv_" #name "_small", gemv, type, 1, 1, 8, 4, 4, 4, false, false)    \
  instantiate_kernel("gemv_" #name "_axpby", gemv, type, 4, 1, 1, 32, 1, 4, true, true)     \
  instantiate_kernel("gemv_gather_" #name, gemv_gather, type, 4, 1, 1, 32, 4, 4)            \
  instantiate_kernel("gemv_t_" #name, gemv_t, type, 1, 2, 8, 4, 4, 1, false, false)         \
  instantiate_kernel("gemv_t_" #name "_tall", gemv_t, type, 8, 4, 8, 4, 4, 4, false, false) \
  instantiate_kernel("gemv_t_" #name "_axpby", gemv_t, type, 1, 4, 8, 4, 4, 4, true, true)  \
  instantiate_kernel("gemv_t_gather_" #name, gemv_t_gather, type, 1, 4, 8, 4, 4, 4)         \
  instantiate_kernel("gemv_wide_" #name, gemv_wide, type, 4, 32)                            \
  instantiate_kernel("gemv_wide_gather_" #name, gemv_wide_gather, type, 4, 8)

instantiate_gemv(float, float)
instantiate_gemv(half, half)
instantiate_gemv(bfloat, bfloat16_t)
