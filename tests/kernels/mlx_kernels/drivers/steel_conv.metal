#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/mma.h"
#include "mlx/backend/metal/kernels/steel/conv/conv.h"
#include "mlx/backend/metal/kernels/steel/conv/params.h"

using namespace mlx::steel;

#include "mlx/backend/metal/kernels/steel/conv/kernels/steel_conv.h"
#include "mlx/backend/metal/kernels/steel/conv/kernels/steel_conv_3d.h"
#include "mlx/backend/metal/kernels/steel/conv/kernels/steel_conv_general.h"

#define instantiate_conv(name, type)                                                        \
  instantiate_kernel("implicit_gemm_conv_2d_" #name, implicit_gemm_conv_2d,                 \
                     type, 32, 32, 16, 2, 2)                                                \
  instantiate_kernel("implicit_gemm_conv_2d_small_" #name, implicit_gemm_conv_2d,           \
                     type, 64, 32, 16, 2, 2, 3, true)                                       \
  instantiate_kernel("implicit_gemm_conv_3d_" #name, implicit_gemm_conv_3d,                 \
                     type, 32, 32, 16, 2, 2, true)                                          \
  instantiate_kernel("implicit_gemm_conv_2d_general_" #name, implicit_gemm_conv_2d_general, \
                     type, 32, 32, 16, 2, 2)

instantiate_conv(float, float)
instantiate_conv(half, half)
