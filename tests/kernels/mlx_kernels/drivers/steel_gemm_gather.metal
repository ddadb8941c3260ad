#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_gather.h"

instantiate_kernel("gather_mm_rhs_float", gather_mm_rhs, float, 16, 64, 16, 1, 2, false, false)
instantiate_kernel("gather_mm_float", gather_mm, float, 32, 32, 16, 2, 2, false, true)
instantiate_kernel("gather_mm_rhs_bfloat", gather_mm_rhs,
                   bfloat16_t, 16, 64, 16, 1, 2, false, false)
instantiate_kernel("gather_mm_bfloat", gather_mm, bfloat16_t, 32, 32, 16, 2, 2, false, true)
