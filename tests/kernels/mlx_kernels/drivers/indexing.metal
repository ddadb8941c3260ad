#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/reduce_utils.h"
#include "mlx/backend/metal/kernels/indexing/gather.h"
#include "mlx/backend/metal/kernels/indexing/gather_axis.h"
#include "mlx/backend/metal/kernels/indexing/gather_front.h"
#include "mlx/backend/metal/kernels/indexing/masked_scatter.h"
#include "mlx/backend/metal/kernels/indexing/scatter.h"
#include "mlx/backend/metal/kernels/indexing/scatter_axis.h"

// gather_impl and scatter_impl take as many index arrays as the kernel that calls them has; MLX
// writes that kernel when it knows the number. This one is for two index arrays of one dimension.
[[kernel]] void gather_two(
    const device float* src [[buffer(0)]],
    device float* out [[buffer(1)]],
    const constant int* src_shape [[buffer(2)]],
    const constant int64_t* src_strides [[buffer(3)]],
    const constant size_t& src_ndim [[buffer(4)]],
    const constant int* slice_sizes [[buffer(5)]],
    const constant int* axes [[buffer(6)]],
    const constant int* idx_shapes [[buffer(7)]],
    const constant int64_t* idx_strides [[buffer(8)]],
    const constant bool* idx_contigs [[buffer(9)]],
    const constant int& idx_ndim [[buffer(10)]],
    const device int* rows [[buffer(20)]],
    const device int* columns [[buffer(21)]],
    uint3 index [[thread_position_in_grid]],
    uint3 grid_dim [[threads_per_grid]]) {
  Indices<int, 2> indices{{{rows, columns}}, idx_shapes, idx_strides, idx_contigs, idx_ndim};
  return gather_impl<float, int, 2, 1, int>(
      src, out, src_shape, src_strides, src_ndim, slice_sizes, axes, indices, index, grid_dim);
}

template <typename T, typename Op>
[[kernel]] void scatter_one(
    const device T* updates [[buffer(1)]],
    device mlx_atomic<T>* out [[buffer(2)]],
    const constant int* upd_shape [[buffer(3)]],
    const constant int64_t* upd_strides [[buffer(4)]],
    const constant size_t& upd_ndim [[buffer(5)]],
    const constant size_t& upd_size [[buffer(6)]],
    const constant int* out_shape [[buffer(7)]],
    const constant int64_t* out_strides [[buffer(8)]],
    const constant size_t& out_ndim [[buffer(9)]],
    const constant int* axes [[buffer(10)]],
    const constant int* idx_shapes [[buffer(11)]],
    const constant int64_t* idx_strides [[buffer(12)]],
    const constant bool* idx_contigs [[buffer(13)]],
    const constant int& idx_ndim [[buffer(14)]],
    const constant size_t& idx_size [[buffer(15)]],
    const device int* rows [[buffer(20)]],
    uint2 gid [[thread_position_in_grid]]) {
  Indices<int, 1> indices{{{rows}}, idx_shapes, idx_strides, idx_contigs, idx_ndim};
  return scatter_impl<T, int, Op, 1, true, 1, int>(
      updates, out, upd_shape, upd_strides, upd_ndim, upd_size, out_shape, out_strides, out_ndim,
      axes, idx_size, indices, gid);
}

instantiate_kernel("scatter_sum_float", scatter_one, float, Sum<float>)
instantiate_kernel("scatter_max_int", scatter_one, int, Max<int>)
instantiate_kernel("scatter_prod_half", scatter_one, half, Prod<half>)
instantiate_kernel("scatter_none_bfloat", scatter_one, bfloat16_t, None)
instantiate_kernel("gather_axis_float", gather_axis, float, int, int, true, true)
instantiate_kernel("gather_axis_bfloat_strided", gather_axis,
                   bfloat16_t, uint, int64_t, false, false)
instantiate_kernel("gather_front_float", gather_front, float, int, int, 4)
instantiate_kernel("masked_assign_impl_float", masked_assign_impl, float, true)
instantiate_kernel("masked_assign_impl_half_strided", masked_assign_impl, half, false)
instantiate_kernel("slice_update_op_impl_float", slice_update_op_impl,
                   float, int, Sum<float>, false, true, false, 1, 2)
instantiate_kernel("slice_update_op_impl_int_scalar", slice_update_op_impl,
                   int, int, Max<int>, true, true, true, 4, 1)
instantiate_kernel("scatter_axis_sum_float", scatter_axis, float, int, int, Sum<float>, true, true)
instantiate_kernel("scatter_axis_none_half", scatter_axis, half, uint, int64_t, None, false, false)
