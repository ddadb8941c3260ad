#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm_nax.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_fused_nax.h"

instantiate_kernel("gemm_nt_float", gemm, float, 64, 64, 64, 2, 2, false, true, float)
instantiate_kernel("gemm_tn_half", gemm, half, 64, 64, 64, 2, 2, true, false, float)
