#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/steel/gemm/nax.h"
#include "mlx/backend/metal/kernels/steel/gemm/loader.h"
#include "mlx/backend/metal/kernels/quantized_nax.h"

instantiate_kernel("affine_qmm_t_nax_bfloat", affine_qmm_t_nax,
                   bfloat16_t, 64, 4, true, false, 32, 64, 64, 2, 2)
