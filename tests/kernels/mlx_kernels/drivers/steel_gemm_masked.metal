#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_masked.h"

instantiate_kernel("block_masked_gemm_float", block_masked_gemm,
                   float, bool, float, 32, 32, 16, 2, 2, false, false, true, false)
instantiate_kernel("block_masked_gemm_bfloat", block_masked_gemm,
                   bfloat16_t, bool, float, 32, 32, 16, 2, 2, false, false, true, false)
