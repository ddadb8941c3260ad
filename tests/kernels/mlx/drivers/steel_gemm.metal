#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_fused.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_gather.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_masked.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_segmented.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_splitk.h"

#define instantiate_gemms(name, type)                                                            \
  instantiate_kernel("gemm_" #name, gemm, type, 64, 64, 16, 2, 2, false, true)                    \
  instantiate_kernel("gather_mm_rhs_" #name, gather_mm_rhs, type, 16, 64, 16, 1, 2, false, false) \
  instantiate_kernel("gather_mm_" #name, gather_mm, type, 32, 32, 16, 2, 2, false, true)          \
  instantiate_kernel("block_masked_gemm_" #name, block_masked_gemm,                               \
                     type, bool, bool, 32, 32, 16, 2, 2, false, false, true, false)               \
  instantiate_kernel("segmented_mm_" #name, segmented_mm, type, 64, 64, 16, 2, 2, true, false)    \
  instantiate_kernel("gemm_splitk_" #name, gemm_splitk,                                           \
                     type, float, 32, 32, 16, 2, 2, false, false, false, true)                    \
  instantiate_kernel("gemm_splitk_accum_" #name, gemm_splitk_accum, float, type)                  \
  instantiate_kernel("gemm_splitk_accum_axpby_" #name, gemm_splitk_accum_axpby, float, type)

instantiate_gemms(float, float)
instantiate_gemms(bfloat, bfloat16_t)
