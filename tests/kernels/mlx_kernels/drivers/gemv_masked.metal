#include <metal_simdgroup>
#include <metal_stdlib>

#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/gemv_masked.h"

#define instantiate_masked(name, type, out_mask, op_mask)                            \
  instantiate_kernel("gemv_masked_" #name, gemv_masked, type, out_mask, op_mask,     \
                     2, 1, 2, 16, 4, 4, false)                                       \
  instantiate_kernel("gemv_t_masked_" #name, gemv_t_masked, type, out_mask, op_mask, \
                     1, 2, 8, 4, 4, 4, false)

instantiate_masked(float_bool_bool, float, bool, bool)
instantiate_masked(float_float_none, float, float, nomask_t)
instantiate_masked(half_none_bool, half, nomask_t, bool)
