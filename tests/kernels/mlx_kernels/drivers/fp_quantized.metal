#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/quantized_utils.h"
#include "mlx/backend/metal/kernels/fp_quantized.h"

#define instantiate_fp(name, type, group, bits)                                           \
  instantiate_kernel("fp_qmv_quad_" #name, fp_qmv_quad, type, group, bits, 64, false)     \
  instantiate_kernel("fp_qmv_fast_" #name, fp_qmv_fast, type, group, bits, false)         \
  instantiate_kernel("fp_qmv_" #name, fp_qmv, type, group, bits, true)                    \
  instantiate_kernel("fp_qmv_wide_" #name, fp_qmv_wide, type, group, bits, 4, 8, false)   \
  instantiate_kernel("fp_qvm_" #name, fp_qvm, type, group, bits, false)                   \
  instantiate_kernel("fp_qvm_split_k_" #name, fp_qvm_split_k, type, group, bits, 8)       \
  instantiate_kernel("fp_qmm_t_" #name, fp_qmm_t, type, group, bits, true, false)         \
  instantiate_kernel("fp_qmm_t_splitk_" #name, fp_qmm_t_splitk, type, group, bits, true)  \
  instantiate_kernel("fp_qmm_n_" #name, fp_qmm_n, type, group, bits, false)               \
  instantiate_kernel("fp_gather_qmv_fast_" #name, fp_gather_qmv_fast, type, group, bits)  \
  instantiate_kernel("fp_gather_qmv_" #name, fp_gather_qmv, type, group, bits)            \
  instantiate_kernel("fp_gather_qvm_" #name, fp_gather_qvm, type, group, bits)            \
  instantiate_kernel("fp_gather_qmm_t_" #name, fp_gather_qmm_t, type, group, bits, false) \
  instantiate_kernel("fp_gather_qmm_n_" #name, fp_gather_qmm_n, type, group, bits)        \
  instantiate_kernel("fp_gather_qmm_rhs_" #name, fp_gather_qmm_rhs,                       \
                     type, group, bits, 16, 32, 32, 1, 2, true)                           \
  instantiate_kernel("fp_quantize_" #name, fp_quantize, type, group, bits, false)         \
  instantiate_kernel("fp_dequantize_" #name, fp_dequantize, type, group, bits, false)     \
  instantiate_kernel("fp_quantize_dequantize_" #name, fp_quantize_dequantize,             \
                     type, group, bits, false)

instantiate_fp(mxfp4_float, float, 32, 4)
instantiate_fp(mxfp8_bfloat, bfloat16_t, 32, 8)
