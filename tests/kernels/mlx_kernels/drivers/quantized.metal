#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/quantized_utils.h"
#include "mlx/backend/metal/kernels/quantized.h"

#define instantiate_affine(name, type, bits)                                                   \
  instantiate_kernel("affine_qmv_quad_" #name, affine_qmv_quad, type, 64, bits, 64, false)     \
  instantiate_kernel("affine_qmv_fast_" #name, affine_qmv_fast, type, 64, bits, false)         \
  instantiate_kernel("affine_qmv_" #name, affine_qmv, type, 64, bits, true)                    \
  instantiate_kernel("affine_qmv_wide_" #name, affine_qmv_wide, type, 64, bits, 4, 8, false)   \
  instantiate_kernel("affine_qvm_" #name, affine_qvm, type, 64, bits, false)                   \
  instantiate_kernel("affine_qvm_split_k_" #name, affine_qvm_split_k, type, 64, bits, 8)       \
  instantiate_kernel("affine_qmm_t_" #name, affine_qmm_t, type, 64, bits, true, false)         \
  instantiate_kernel("affine_qmm_t_splitk_" #name, affine_qmm_t_splitk, type, 64, bits, true)  \
  instantiate_kernel("affine_qmm_n_" #name, affine_qmm_n, type, 64, bits, false)               \
  instantiate_kernel("affine_gather_qmv_fast_" #name, affine_gather_qmv_fast, type, 64, bits)  \
  instantiate_kernel("affine_gather_qmv_" #name, affine_gather_qmv, type, 64, bits)            \
  instantiate_kernel("affine_gather_qvm_" #name, affine_gather_qvm, type, 64, bits)            \
  instantiate_kernel("affine_gather_qmm_t_" #name, affine_gather_qmm_t, type, 64, bits, false) \
  instantiate_kernel("affine_gather_qmm_n_" #name, affine_gather_qmm_n, type, 64, bits)        \
  instantiate_kernel("affine_gather_qmm_rhs_" #name, affine_gather_qmm_rhs,                    \
                     type, 64, bits, 16, 32, 32, 1, 2, true)                                   \
  instantiate_kernel("affine_quantize_" #name, affine_quantize, type, 64, bits)                \
  instantiate_kernel("affine_dequantize_" #name, affine_dequantize, type, 64, bits)

instantiate_affine(float_4, float, 4)
instantiate_affine(bfloat_3, bfloat16_t, 3)
