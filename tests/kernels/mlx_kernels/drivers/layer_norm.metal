// Layer and RMS norm in the style of MLX's kernels, whose own are not among its headers: one
// threadgroup a row, N_READS values a thread, sums by simdgroup and then through threadgroup
// memory.
#include <metal_common>
#include <metal_simdgroup>

#include "mlx/backend/metal/kernels/utils.h"

using namespace metal;

constant bool has_weight [[function_constant(0)]];

METAL_FUNC float threadgroup_sum(
    float value,
    threadgroup float* partial,
    uint simd_lane_id,
    uint simd_group_id,
    uint simds) {
  value = simd_sum(value);
  threadgroup_barrier(mem_flags::mem_threadgroup); // partial may still be read
  if (simd_lane_id == 0) {
    partial[simd_group_id] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_sum(simd_lane_id < simds ? partial[simd_lane_id] : 0.0f);
}

template <typename T, bool centred, int N_READS = 4>
[[kernel]] void norm(
    const device T* x,
    const device T* weight,
    const device T* bias,
    device T* out,
    constant float& eps,
    constant uint& axis_size,
    uint gid [[threadgroup_position_in_grid]],
    uint lid [[thread_position_in_threadgroup]],
    uint lsize [[threads_per_threadgroup]],
    uint simds [[simdgroups_per_threadgroup]],
    uint simd_lane_id [[thread_index_in_simdgroup]],
    uint simd_group_id [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[32];
  x += gid * size_t(axis_size);
  out += gid * size_t(axis_size);

  float mean = 0;
  if (centred) {
    for (uint r = lid * N_READS; r < axis_size; r += lsize * N_READS) {
      for (int i = 0; i < N_READS && r + i < axis_size; ++i) {
        mean += x[r + i];
      }
    }
    mean = threadgroup_sum(mean, partial, simd_lane_id, simd_group_id, simds) / axis_size;
  }

  float square = 0;
  for (uint r = lid * N_READS; r < axis_size; r += lsize * N_READS) {
    for (int i = 0; i < N_READS && r + i < axis_size; ++i) {
      float difference = x[r + i] - mean;
      square += difference * difference;
    }
  }
  square = threadgroup_sum(square, partial, simd_lane_id, simd_group_id, simds);
  float scale = precise::rsqrt(square / axis_size + eps);

  for (uint r = lid * N_READS; r < axis_size; r += lsize * N_READS) {
    for (int i = 0; i < N_READS && r + i < axis_size; ++i) {
      float y = (x[r + i] - mean) * scale;
      if (has_weight) {
        y = y * weight[r + i] + (centred ? float(bias[r + i]) : 0.0f);
      }
      out[r + i] = static_cast<T>(y);
    }
  }
}

instantiate_kernel("layer_norm_float", norm, float, true)
instantiate_kernel("layer_norm_half", norm, half, true)
instantiate_kernel("layer_norm_bfloat", norm, bfloat16_t, true)
instantiate_kernel("rms_norm_float", norm, float, false)
instantiate_kernel("rms_norm_bfloat", norm, bfloat16_t, false)
