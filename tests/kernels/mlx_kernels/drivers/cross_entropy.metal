#include <metal_common>
#include <metal_simdgroup>

using namespace metal;

#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/cross_entropy.h"

#define instantiate_cross_entropy(name, type)                     \
  instantiate_kernel("cross_entropy_" #name, cross_entropy, type) \
  instantiate_kernel("cross_entropy_vjp_" #name, cross_entropy_vjp, type)

instantiate_cross_entropy(float, float)
instantiate_cross_entropy(half, half)
instantiate_cross_entropy(bfloat, bfloat16_t)
