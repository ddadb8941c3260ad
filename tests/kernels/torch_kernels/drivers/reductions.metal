#include <c10/metal/reduction_utils.h>
#include <metal_stdlib>
using namespace metal;
using namespace c10::metal;

// One threadgroup per row; out[row] by each of the reductions.
template <typename T>
kernel void reduce(
    device opmath_t<T>* sums, device opmath_t<T>* products, device T* least, device T* largest,
    device long* where_least, device long* where_largest, device const T* x,
    uint row [[threadgroup_position_in_grid]], uint i [[thread_position_in_threadgroup]],
    uint size [[threads_per_threadgroup]]) {
  threadgroup opmath_t<T> wide[32];
  threadgroup T values[32];
  threadgroup long indices[32];
  const T value = x[row * size + i];
  sums[row] = c10::metal::threadgroup_sum(wide, value, i, size);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  products[row] = c10::metal::threadgroup_prod(wide, value, i, size);
  least[row] = c10::metal::threadgroup_min(values, value, i, size);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  largest[row] = c10::metal::threadgroup_max(values, value, i, size);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const long at_least = c10::metal::threadgroup_argmin(values, indices, value, long(i), i, size);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const long at_most = c10::metal::threadgroup_argmax(values, indices, value, long(i), i, size);
  if (i == 0) {
    where_least[row] = at_least;
    where_largest[row] = at_most;
  }
}

#define REDUCE(T)                                                                              \
  template [[host_name("reduce_" #T)]] kernel void reduce<T>(                                  \
      device opmath_t<T>*, device opmath_t<T>*, device T*, device T*, device long*,            \
      device long*, device const T*, uint, uint, uint);
REDUCE(float) REDUCE(half) REDUCE(bfloat) REDUCE(int) REDUCE(long) REDUCE(uint)

kernel void welford(
    device float* out, device const float* x, uint row [[threadgroup_position_in_grid]],
    uint i [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
  threadgroup float values[1024];
  values[i] = x[row * size + i];
  const float3 moments = c10::metal::threadgroup_welford_reduce(values, size);
  if (i == 0) {
    out[3 * row] = moments.x;
    out[3 * row + 1] = moments.y;
    out[3 * row + 2] = moments.z;
  }
}
