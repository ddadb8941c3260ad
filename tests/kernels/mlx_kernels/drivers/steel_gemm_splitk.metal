#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_splitk.h"

instantiate_kernel("gemm_splitk_float", gemm_splitk,
                   float, float, 32, 32, 16, 2, 2, false, false, false, true)
instantiate_kernel("gemm_splitk_accum_float", gemm_splitk_accum, float, float)
instantiate_kernel("gemm_splitk_accum_axpby_float", gemm_splitk_accum_axpby, float, float)
instantiate_kernel("gemm_splitk_bfloat", gemm_splitk,
                   bfloat16_t, float, 32, 32, 16, 2, 2, false, false, false, true)
instantiate_kernel("gemm_splitk_accum_bfloat", gemm_splitk_accum, float, bfloat16_t)
instantiate_kernel("gemm_splitk_accum_axpby_bfloat", gemm_splitk_accum_axpby, float, bfloat16_t)
