#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_fused.h"

instantiate_kernel("gemm_float", gemm, float, 64, 64, 16, 2, 2, false, true)
instantiate_kernel("gemm_bfloat", gemm, bfloat16_t, 64, 64, 16, 2, 2, false, true)
