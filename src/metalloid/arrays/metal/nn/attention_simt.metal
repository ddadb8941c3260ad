// Attention of few queries on SIMT devices: a threadgroup has one query, whose keys its simdgroups
// share, so that many of them are read at a time. Plain MSL.
namespace nn {

// The mean of the values of all keys, from what the simdgroups of a threadgroup know.
template <ushort columns, ushort simdgroups, typename T>
METAL_FUNC void combine_simdgroups(Running<columns> running, device T *out, uint width,
                                   threadgroup float *shared, ushort simdgroup, ushort lane) {
  constexpr ushort length = columns * 32 + 2;
  threadgroup float *own = shared + simdgroup * length;
  own[columns * 32] = running.largest;
  own[columns * 32 + 1] = running.total;
  for (ushort c = 0; c < columns; ++c) {
    own[c * 32 + lane] = running.mean[c];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Lane s knows by how much the sums of simdgroup s are rescaled.
  const bool exists = lane < simdgroups;
  threadgroup const float *other = shared + (exists ? lane : 0) * length + columns * 32;
  const float largest = simd_max(other[0]);
  const float factor = exists ? exp(other[0] - largest) : 0;
  const float total = simd_sum(factor * other[1]);
  for (uint start = simdgroup * 32; start < width; start += simdgroups * 32) {
    const uint d = start + lane;
    float mean = 0;
    #pragma clang loop unroll_count(4)
    for (ushort s = 0; s < simdgroups; ++s) {
      mean = fma(simd_shuffle(factor, s), shared[s * length + d], mean);
    }
    if (d < width) {
      out[d] = T(mean / total);
    }
  }
}

template <ushort chunks, ushort columns, ushort simdgroups, bool is_full, bool is_causal,
          bool has_sinks, typename T, typename Mask>
METAL_FUNC void attend_one(device const T *q, device const T *k, device const T *v, Mask mask,
                           device const float *sinks, device T *out, Extents size,
                           threadgroup float *shared, uint3 group, ushort simdgroup, ushort lane) {
  constexpr ushort block = 8;  // keys of a simdgroup: number i in lane i, and in every 8th from there
  const uint heads_of_keys = size.heads / size.repeats;
  const uint batch = group.y / heads_of_keys, number = group.x % size.queries;
  const uint head = group.y % heads_of_keys * size.repeats + group.x / size.queries;
  const long row = (long(batch) * size.heads + head) * size.queries + number;
  q += row * size.depth;
  k += long(group.y) * size.capacity * size.depth;
  v += long(group.y) * size.capacity * size.width;

  float query[chunks];
  for (ushort c = 0; c < chunks; ++c) {
    query[c] = feature<is_full>(q, c * 32 + lane, size.depth) * size.scale;
  }
  const int keys = size.keys;
  const int limit = is_causal ? int(number + 1 + size.keys) - int(size.queries) : keys;
  const int end = limit > 0 ? limit : keys;  // a query that meets no key has the mean of all values
  const uint mask_start =
      batch * size.strides.x + head * size.strides.y + number * size.strides.z;
  const bool has_sink = has_sinks && simdgroup == 0;
  Running<columns> running;
  running.begin(has_sink ? sinks[head] : excluded, has_sink ? 1 : 0);
  threadgroup float *weights = shared + simdgroup * (columns * 32 + 2);

  for (int start = simdgroup * block; start < end; start += simdgroups * block) {
    float sums[block], values[block][columns];
    #pragma clang loop unroll(full)
    for (ushort j = 0; j < block; ++j) {
      const long key = min(start + j, keys - 1);
      sums[j] = 0;
      #pragma clang loop unroll(full)
      for (ushort c = 0; c < chunks; ++c) {
        const float own = feature<is_full>(k + key * size.depth, c * 32 + lane, size.depth);
        sums[j] = fma(query[c], own, sums[j]);
      }
      #pragma clang loop unroll(full)
      for (ushort c = 0; c < columns; ++c) {  // read with the keys, not after their scores
        values[j][c] = feature<is_full>(v + key * size.width, c * 32 + lane, size.width);
      }
    }
    const int key = start + lane % block;
    const bool exists = key < keys;
    float score = sum_lanes<block>(sums, lane);
    score = mask(score, mask_start + uint(exists ? key : 0) * size.strides.w);
    score = is_causal && key >= limit ? excluded : score;
    running.rescale(max(running.largest, simd_max(exists ? score : excluded)));
    // Through memory: each of the shuffles of constant lanes would need a predicate of its own.
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (lane < block) {
      weights[lane] = exists ? exp(score - running.largest) : 0;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    #pragma clang loop unroll(full)
    for (ushort j = 0; j < block; ++j) {
      const float own = weights[j];
      running.total += own;
      #pragma clang loop unroll(full)
      for (ushort c = 0; c < columns; ++c) {
        running.mean[c] = fma(own, values[j][c], running.mean[c]);
      }
    }
  }
  combine_simdgroups<columns, simdgroups>(running, out + row * size.width, size.width, shared,
                                          simdgroup, lane);
}

}  // namespace nn
