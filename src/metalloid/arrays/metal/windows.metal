// Windows over an array whose channels come last: convolution and pooling. Plain MSL.
//
// The address of an element of a window is the sum of three offsets: that of the row of windows,
// from a table; that of the window in its row, a multiple of a step; and that of the element within
// the window, from a second table. So windows with any number of axes, strides and dilations share
// this code.
namespace numpy {

struct Windows {
  uint width;     // windows of a row
  uint step;      // from one to the next
  uint count;     // of all windows
  uint depth;     // elements of a window
  uint channels;  // of a group
  uint outputs;   // of a group
  uint all;       // outputs of all groups
};

// A matrix with the contents of a window in each row (im2col), which is not stored. If `adjacent`,
// the elements of a simdgroup are contiguous in memory.
template <typename T, typename Index, bool adjacent>
struct Patches {
  device const T *x;
  device const long *rows;
  device const Index *offsets;
  uint width, step;

  METAL_FUNC T operator()(uint window, uint element) const {
    const uint row = window / width;
    device const T *from = x + rows[row] + long(window - row * width) * step;
    if (adjacent) {
      const uint first = simd_broadcast_first(element);
      return from[offsets[first] + Index(element - first)];
    }
    return from[offsets[element]];
  }
  template <typename S>
  METAL_FUNC void four(uint window, uint element, thread S *to) const {
    for (ushort e = 0; e < 4; ++e) {
      to[e] = S((*this)(window, element + e));
    }
  }
};

// A matrix in memory.
template <typename T>
struct Rows {
  device T *first;
  uint width;

  METAL_FUNC T operator()(uint row, uint column) const { return first[long(row) * width + column]; }
  template <typename S>
  METAL_FUNC void operator()(uint row, uint column, S value) const {
    first[long(row) * width + column] = T(value);
  }
  template <typename S>
  METAL_FUNC void four(uint row, uint column, thread S *to) const {
    for (ushort e = 0; e < 4; ++e) {
      to[e] = S((*this)(row, column + e));
    }
  }
};

// A convolution as a product of matrices: windows times weights, which lie in rows of outputs.
template <bool is_simt, bool adjacent, typename T, typename S, typename Index>
METAL_FUNC void convolve(device const T *x, device const T *weights, device const long *rows,
                         device const Index *offsets, device T *out, Windows windows,
                         threadgroup S *tiles, uint3 group, ushort simdgroup, ushort lane) {
  const long part = group.z;
  const Patches<T, Index, adjacent> left{x + part * windows.channels, rows, offsets, windows.width,
                                         windows.step};
  const Rows<const T> right{weights + part * windows.outputs, windows.all};
  const Rows<T> store{out + part * windows.outputs, windows.all};
  const uint3 size(windows.count, windows.outputs, windows.depth);
  if constexpr (is_simt) {
    multiply_in_squares<S, 4, false, false>(tiles, left, right, store, size, group,
                                            simdgroup * 32 + lane);
  } else {
    multiply_in_registers<S, false, false>(tiles, left, right, store, size, group, simdgroup, lane);
  }
}

// With few outputs in a group: each thread makes one. Neighbours are outputs, or windows if
// `across`.
template <bool across, typename S, typename T, typename Index>
METAL_FUNC void convolve_directly(device const T *x, device const T *weights,
                                  device const long *rows, device const Index *offsets,
                                  device T *out, Windows windows, uint3 at) {
  const uint output = across ? at.y : at.x, window = across ? at.x : at.y;
  const uint part = windows.outputs == 1 ? output : output / windows.outputs;
  device const T *from = x + rows[at.z] + long(window) * windows.step +
                         long(part) * windows.channels;
  device const T *own = weights + output;
  S sum = S(0);
  for (uint k = 0; k < windows.depth; ++k) {
    sum = times_plus(S(from[offsets[k]]), S(own[long(k) * windows.all]), sum);
  }
  out[(long(at.z) * windows.width + window) * windows.all + output] = T(sum);
}

// Terms k of window `i` of a vector with zeros around it: those before `end` have no zero after it.
METAL_FUNC uint end_of_terms(uint size, uint width, uint left, uint i) {
  return clamp(long(size) + long(left) - long(i), 0l, long(width));
}

// Element `i` of the sums of products of a vector with each window of another one, around which there
// are zeros: of x[i + k - left] * y[k], or y from its end if `flips`. The windows of a simdgroup begin
// one after the other, so that only their first and last terms need conditions.
template <typename S, bool flips, typename T>
METAL_FUNC void correlate(device const T *x, device const T *y, device T *out, uint size,
                          uint width, uint left, uint i) {
  device const T *window = x + (long(i) - long(left));
  const uint lane0 = simd_broadcast_first(i), lane31 = lane0 + 31;
  const uint first = left > i ? left - i : 0, last = end_of_terms(size, width, left, i);
  const uint end = end_of_terms(size, width, left, lane0);
  const uint full_begin = min(left > lane0 ? left - lane0 : 0, end);
  const uint full_end = max(end_of_terms(size, width, left, lane31), full_begin);
  S sum = S(0);
  for (uint k = left > lane31 ? left - lane31 : 0; k < full_begin; ++k) {
    if (k >= first && k < last) {
      sum = times_plus(S(window[k]), S(y[flips ? width - 1 - k : k]), sum);
    }
  }
  for (uint k = full_begin; k < full_end; ++k) {
    sum = times_plus(S(window[k]), S(y[flips ? width - 1 - k : k]), sum);
  }
  for (uint k = full_end; k < end; ++k) {
    if (k >= first && k < last) {
      sum = times_plus(S(window[k]), S(y[flips ? width - 1 - k : k]), sum);
    }
  }
  out[i] = T(sum);
}

// The largest of each window, or the sum, for each channel.
template <bool across, bool largest, typename T, typename S, typename Index>
METAL_FUNC void pool(device const T *x, device const long *rows, device const Index *offsets,
                     device S *out, Windows windows, uint3 at) {
  const uint channel = across ? at.y : at.x, window = across ? at.x : at.y;
  device const T *from = x + rows[at.z] + long(window) * windows.step + channel;
  S pooled = S(from[offsets[0]]);
  for (uint k = 1; k < windows.depth; ++k) {
    const S value = S(from[offsets[k]]);
    if constexpr (largest) {
      pooled = maximum(pooled, value);
    } else {
      pooled = add(pooled, value);
    }
  }
  out[(long(at.z) * windows.width + window) * windows.all + channel] = pooled;
}

// The coefficients of the polynomial with given roots, the highest power first, by a simdgroup: it
// multiplies by one linear factor after another. Blocks of coefficients are updated from the last
// one on, as each depends on the one before.
template <typename T>
METAL_FUNC void multiply_linear_factors(device const T *roots, device T *out, uint count,
                                        ushort lane) {
  for (uint i = lane; i <= count; i += 32) {
    out[i] = T(i == 0);
  }
  for (uint k = 0; k < count; ++k) {
    const T root = roots[k];
    for (uint block = k / 32 + 1; block-- > 0;) {
      const uint i = block * 32 + lane + 1;
      const bool is_used = i <= k + 1;
      T changed = T(0);
      simdgroup_barrier(mem_flags::mem_device);
      if (is_used) {
        changed = subtract(out[i], multiply(root, out[i - 1]));
      }
      simdgroup_barrier(mem_flags::mem_device);
      if (is_used) {
        out[i] = changed;
      }
    }
  }
}

}  // namespace numpy
