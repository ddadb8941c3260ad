// Windows over an array whose channels come last: convolution and pooling. Plain MSL.
//
// The address of an element of a window is the sum of three offsets: that of the row of windows,
// from a table; that of the window in its row, a multiple of a step; and that of the element within
// the window, from a second table. So windows with any number of axes, strides and dilations share
// this code.
namespace numpy {

struct Windows {
  long start;     // of the array and of the weights, in elements
  long weights;
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

}  // namespace numpy

// A convolution as a product of matrices: windows times weights, which lie in rows of outputs.
template <typename T, typename S, typename Index, bool adjacent>
[[kernel]] void convolve(device const T *x, device const T *weights, device T *out,
                         device const long *rows, device const Index *offsets,
                         constant numpy::Windows &given,
                         uint3 group [[threadgroup_position_in_grid]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
  const long part = group.z;
  const numpy::Patches<T, Index, adjacent> left{x + given.start + part * given.channels, rows, offsets,
                                              given.width, given.step};
  const numpy::Rows<const T> right{weights + given.weights + part * given.outputs,
                                    given.all};
  const numpy::Rows<T> store{out + part * given.outputs, given.all};
  const uint3 size(given.count, given.outputs, given.depth);
#ifdef METALLOID_SIMT
  threadgroup S tiles[numpy::square_capacity<4>()];
  numpy::multiply_in_squares<S, 4, false, false>(tiles, left, right, store, size, group,
                                                 simdgroup * 32 + lane);
#else
  threadgroup S tiles[numpy::product_capacity<S>()];
  numpy::multiply_in_registers<S, false, false>(tiles, left, right, store, size, group, simdgroup,
                                                lane);
#endif
}

// With few outputs in a group: each thread makes one. Neighbours are outputs, or windows if
// `across`.
template <typename T, typename S, typename Index, bool across>
[[kernel]] void convolve_directly(device const T *x, device const T *weights, device T *out,
                                  device const long *rows, device const Index *offsets,
                                  constant numpy::Windows &given,
                                  uint3 at [[thread_position_in_grid]]) {
  const uint output = across ? at.y : at.x, window = across ? at.x : at.y;
  const uint part = given.outputs == 1 ? output : output / given.outputs;
  device const T *from = x + given.start + rows[at.z] + long(window) * given.step +
                         long(part) * given.channels;
  device const T *own = weights + given.weights + output;
  S sum = S(0);
  for (uint k = 0; k < given.depth; ++k) {
    sum = numpy::times_plus(S(from[offsets[k]]), S(own[long(k) * given.all]), sum);
  }
  out[(long(at.z) * given.width + window) * given.all + output] = T(sum);
}

// The largest of each window, or the sum, for each channel.
template <typename T, typename S, typename Index, bool across, bool largest>
[[kernel]] void pool(device const T *x, device S *out, device const long *rows,
                     device const Index *offsets, constant numpy::Windows &given,
                     uint3 at [[thread_position_in_grid]]) {
  const uint channel = across ? at.y : at.x, window = across ? at.x : at.y;
  device const T *from = x + given.start + rows[at.z] + long(window) * given.step + channel;
  S pooled = S(from[offsets[0]]);
  for (uint k = 1; k < given.depth; ++k) {
    const S value = S(from[offsets[k]]);
    if constexpr (largest) {
      pooled = numpy::maximum(pooled, value);
    } else {
      pooled = numpy::add(pooled, value);
    }
  }
  out[(long(at.z) * given.width + window) * given.all + channel] = pooled;
}
