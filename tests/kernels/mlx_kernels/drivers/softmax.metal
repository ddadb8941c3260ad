#include <metal_common>
#include <metal_simdgroup>

using namespace metal;

#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/softmax.h"

#define instantiate_softmax(name, type)                                     \
  instantiate_kernel("softmax_single_row_" #name, softmax_single_row, type) \
  instantiate_kernel("softmax_looped_" #name, softmax_looped, type)

#define instantiate_softmax_precise(name, type)                                            \
  instantiate_kernel("softmax_single_row_precise_" #name, softmax_single_row, type, float) \
  instantiate_kernel("softmax_looped_precise_" #name, softmax_looped, type, float)

instantiate_softmax(float, float)
instantiate_softmax(half, half)
instantiate_softmax(bfloat, bfloat16_t)
instantiate_softmax_precise(half, half)
instantiate_softmax_precise(bfloat, bfloat16_t)
