#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/steel/gemm/kernels/steel_gemm_segmented.h"

instantiate_kernel("segmented_mm_float", segmented_mm, float, 64, 64, 16, 2, 2, true, false)
instantiate_kernel("segmented_mm_bfloat", segmented_mm, bfloat16_t, 64, 64, 16, 2, 2, true, false)
