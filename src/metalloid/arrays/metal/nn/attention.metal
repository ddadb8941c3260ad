// Attention without a matrix of scores: softmax(q k' * scale + mask) v, block by block of keys, with
// the running maximum and sum of M. Milakov and N. Gimelshein, "Online normalizer calculation for
// softmax", 2018. Plain MSL.
namespace nn {

struct Extents {
  uint heads;      // of queries
  uint repeats;    // heads of queries that share keys and values
  uint queries;    // of a head
  uint keys;       // of a head
  uint capacity;   // rows of a head of keys: only the first ones are keys
  uint depth;      // features of a query and a key
  uint width;      // features of a value
  uint4 strides;   // of the mask: batch, head, query, key; 0 where it is broadcast
  float scale;
};

// Scores of queries and keys that may not meet. Finite, so that a row of them has a mean.
constexpr constant float excluded = -0x1.fffffep127f;

struct NoMask {
  METAL_FUNC float operator()(float score, uint at) const { return score; }
};
struct Selection {
  device const bool *x;
  METAL_FUNC float operator()(float score, uint at) const { return x[at] ? score : excluded; }
};
template <typename T>
struct Summand {
  device const T *x;
  METAL_FUNC float operator()(float score, uint at) const { return score + float(x[at]); }
};

// A feature of a lane; `is_full` if all lanes have one.
template <bool is_full, typename T>
METAL_FUNC float feature(device const T *from, int number, int count) {
  return is_full || number < count ? float(from[number]) : 0;
}

// A query that meets keys: what its lanes know so far.
template <ushort columns>
struct Running {
  float largest, total, mean[columns];  // the mean of values times `total`

  METAL_FUNC void begin(float first, float count) {
    largest = first;
    total = count;
    for (ushort c = 0; c < columns; ++c) {
      mean[c] = 0;
    }
  }

  METAL_FUNC void rescale(float to) {
    const float factor = exp(largest - to);
    largest = to;
    total *= factor;
    for (ushort c = 0; c < columns; ++c) {
      mean[c] *= factor;
    }
  }
};

// Queries of one head of keys: `rows` of a simdgroup, whose lanes have features 32 apart. The
// simdgroups of a threadgroup share the keys.
template <ushort rows, ushort chunks, ushort columns, ushort simdgroups, bool is_full,
          bool is_causal, bool has_sinks, typename T, typename Mask>
METAL_FUNC void attend(device const T *q, device const T *k, device const T *v, Mask mask,
                       device const float *sinks, device T *out, Extents size,
                       threadgroup float *shared, uint3 group, ushort simdgroup, ushort lane) {
  constexpr ushort block = 32, step = 8;
  const uint heads_of_keys = size.heads / size.repeats, all = size.repeats * size.queries;
  const uint batch = group.y / heads_of_keys, head = group.y % heads_of_keys;
  const uint first_head = head * size.repeats, first_row = group.x * rows;
  q += (long(batch) * size.heads + first_head) * size.queries * size.depth;
  out += (long(batch) * size.heads + first_head) * size.queries * size.width;
  k += long(group.y) * size.capacity * size.depth;
  v += long(group.y) * size.capacity * size.width;

  float query[rows][chunks];
  Running<columns> running[rows];
  uint mask_start[rows];
  int limits[rows], end = 0;  // a query meets keys before its limit
  for (ushort r = 0; r < rows; ++r) {
    const uint row = min(first_row + r, all - 1), own = row / size.queries;
    const uint number = row % size.queries;
    for (ushort c = 0; c < chunks; ++c) {
      const uint d = c * 32 + lane;
      query[r][c] = d < size.depth ? float(q[long(row) * size.depth + d]) * size.scale : 0;
    }
    limits[r] = is_causal ? int(number + 1 + size.keys) - int(size.queries) : int(size.keys);
    end = max(end, limits[r] > 0 ? limits[r] : int(size.keys));
    mask_start[r] = batch * size.strides.x + (first_head + own) * size.strides.y +
                    number * size.strides.z;
    const bool has_sink = has_sinks && simdgroup == 0;
    running[r].begin(has_sink ? sinks[first_head + own] : excluded, has_sink ? 1 : 0);
  }

  for (int start = simdgroup * block; start < end; start += simdgroups * block) {
    for (ushort r = 0; r < rows; ++r) {
      float scores = 0;
      for (ushort part = 0; part < block / step; ++part) {
        float sums[step];
        #pragma clang loop unroll(full)
        for (ushort j = 0; j < step; ++j) {
          const int key = min(start + part * step + j, int(size.keys) - 1);
          device const T *from = k + long(key) * size.depth;
          sums[j] = 0;
          #pragma clang loop unroll(full)
          for (ushort c = 0; c < chunks; ++c) {
            sums[j] = fma(query[r][c], feature<is_full>(from, c * 32 + lane, size.depth), sums[j]);
          }
        }
        const float products = sum_lanes<step>(sums, lane);
        scores = lane / step == part ? products : scores;
      }
      const int key = start + lane;
      const bool exists = key < int(size.keys);
      scores = mask(scores, mask_start[r] + uint(exists ? key : 0) * size.strides.w);
      scores = is_causal && key >= limits[r] ? excluded : scores;
      const float largest = max(running[r].largest, simd_max(exists ? scores : excluded));
      running[r].rescale(largest);
      const float weight = exists ? exp(scores - largest) : 0;
      running[r].total += simd_sum(weight);
      for (ushort j = 0; j < block; ++j) {
        const float own = simd_shuffle(weight, j);
        device const T *from = v + long(min(start + j, int(size.keys) - 1)) * size.width;
        #pragma clang loop unroll(full)
        for (ushort c = 0; c < columns; ++c) {
          const float own_feature = feature<is_full>(from, c * 32 + lane, size.width);
          running[r].mean[c] = fma(own, own_feature, running[r].mean[c]);
        }
      }
    }
  }

  for (ushort r = 0; r < rows; ++r) {
    if constexpr (simdgroups > 1) {  // the first simdgroup combines all
      constexpr ushort length = columns * 32 + 2;
      threadgroup float *own = shared + simdgroup * length;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      own[columns * 32] = running[r].largest;
      own[columns * 32 + 1] = running[r].total;
      for (ushort c = 0; c < columns; ++c) {
        own[c * 32 + lane] = running[r].mean[c];
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (simdgroup > 0) {
        continue;
      }
      for (ushort other = 1; other < simdgroups; ++other) {
        threadgroup const float *from = shared + other * length;
        const float largest = max(running[r].largest, from[columns * 32]);
        const float factor = exp(from[columns * 32] - largest);
        running[r].rescale(largest);
        running[r].total = fma(factor, from[columns * 32 + 1], running[r].total);
        for (ushort c = 0; c < columns; ++c) {
          running[r].mean[c] = fma(factor, from[c * 32 + lane], running[r].mean[c]);
        }
      }
    }
    const uint row = first_row + r;
    for (ushort c = 0; c < columns; ++c) {
      const uint d = c * 32 + lane;
      if (row < all && d < size.width) {
        out[long(row) * size.width + d] = T(running[r].mean[c] / running[r].total);
      }
    }
  }
}

}  // namespace nn
