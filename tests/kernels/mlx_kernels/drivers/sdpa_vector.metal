#include <metal_stdlib>

#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/sdpa_vector.h"

#define instantiate_sdpa(name, type)                                              \
  instantiate_kernel("sdpa_vector_" #name, sdpa_vector, type, 64)                 \
  instantiate_kernel("sdpa_vector_2pass_1_" #name, sdpa_vector_2pass_1, type, 64) \
  instantiate_kernel("sdpa_vector_2pass_1_gqa_" #name, sdpa_vector_2pass_1_gqa,   \
                     type, 64, 64, 4, 2)                                          \
  instantiate_kernel("sdpa_vector_2pass_2_" #name, sdpa_vector_2pass_2, type, 64)

instantiate_sdpa(float, float)
instantiate_sdpa(bfloat, bfloat16_t)
