#include <metal_common>
#include <metal_simdgroup>

using namespace metal;

#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/logsumexp.h"

#define instantiate_logsumexp(name, type)                 \
  instantiate_kernel("logsumexp_" #name, logsumexp, type) \
  instantiate_kernel("logsumexp_looped_" #name, logsumexp_looped, type)

instantiate_logsumexp(float, float)
instantiate_logsumexp(half, half)
instantiate_logsumexp(bfloat, bfloat16_t)
