#include <metal_atomic>
#include <metal_simdgroup>

#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/atomic.h"
#include "mlx/backend/metal/kernels/reduction/ops.h"
#include "mlx/backend/metal/kernels/reduce.h"

#define instantiate_reduce(name, type, result, op)                                             \
  instantiate_kernel("init_reduce_" #op "_" #name, init_reduce, result, op<result>)            \
  instantiate_kernel(                                                                          \
      "all_reduce_" #op "_" #name, all_reduce, type, result, op<result>)                       \
  instantiate_kernel(                                                                          \
      "row_reduce_simple_" #op "_" #name, row_reduce_simple, type, result, op<result>)         \
  instantiate_kernel(                                                                          \
      "row_reduce_small_" #op "_" #name, row_reduce_small, type, result, op<result>, int, 1)   \
  instantiate_kernel(                                                                          \
      "row_reduce_looped_" #op "_" #name, row_reduce_looped, type, result, op<result>, int, 2) \
  instantiate_kernel(                                                                          \
      "col_reduce_small_" #op "_" #name, col_reduce_small, type, result, op<result>, int, 1)   \
  instantiate_kernel("col_reduce_longcolumn_" #op "_" #name, col_reduce_longcolumn,            \
                     type, result, op<result>, int, 1)                                         \
  instantiate_kernel("col_reduce_looped_" #op "_" #name, col_reduce_looped,                    \
                     type, result, op<result>, int, 1, 32, 32)                                 \
  instantiate_kernel("col_reduce_looped_8_128_" #op "_" #name, col_reduce_looped,              \
                     type, result, op<result>, int, 1, 8, 128)                                 \
  instantiate_kernel("col_reduce_2pass_" #op "_" #name, col_reduce_2pass,                      \
                     type, result, op<result>, int, 1, 32, 32)
