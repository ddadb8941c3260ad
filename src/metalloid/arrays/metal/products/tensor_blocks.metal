// What tensor cores and the copies of NVIDIA's GPUs do, in plain MSL, which is slow and for tests.
// Where METALLOID_TENSOR_BLOCKS is defined they are instructions (metal_tensor_blocks.h).
namespace numpy {

// A register of a block: two halves, or a float.
template <typename T>
struct tensor_word {
  static constexpr constant uint count = 2;
  METAL_FUNC static float value(uint word, uint k) {
    return float(as_type<T>(ushort(word >> k * 16)));
  }
  METAL_FUNC static uint of(T element) { return as_type<ushort>(element); }
  METAL_FUNC static uint4 rounded(uint4 group) { return group; }
  METAL_FUNC static uint4 group(const thread T (&x)[8]) {
    return uint4(as_type<uint2>(vec<T, 4>(x[0], x[1], x[2], x[3])),
                 as_type<uint2>(vec<T, 4>(x[4], x[5], x[6], x[7])));
  }
};
// Of floats 11 bits count, which is TF32. They are rounded to the nearest before.
template <>
struct tensor_word<float> {
  static constexpr constant uint count = 1;
  METAL_FUNC static float value(uint word, uint) { return as_type<float>(word & 0xffffe000); }
  METAL_FUNC static uint of(float element) { return as_type<uint>(element); }
  METAL_FUNC static uint4 rounded(uint4 group) {
    #pragma clang loop unroll(full)
    for (uint k = 0; k < 4; ++k) {
      group[k] += (group[k] & 0x7f800000) != 0x7f800000 ? 0x1000 : 0;  // but for infinity and NaN
    }
    return group;
  }
  METAL_FUNC static uint4 group(const thread float (&x)[4]) {
    return as_type<uint4>(float4(x[0], x[1], x[2], x[3]));
  }
};

// The quarters of a block in threadgroup memory, 16 bytes of a row in four lanes. Lane 8 q + r says
// where row r of quarter q begins; if they are transposed, which halves may be, those are columns.
template <bool is_transposed, typename T>
METAL_FUNC void load_blocks(thread uint (&to)[4], threadgroup const T *tile, uint offset,
                            uint lane) {
#if defined(METALLOID_TENSOR_BLOCKS)
  metalloid::load_blocks<is_transposed>(to, tile, offset);
#else
  threadgroup const ushort *words = reinterpret_cast<threadgroup const ushort *>(tile);
  const uint row = lane / 4, pair = lane % 4 * 2, size = sizeof(T) / 2;
  for (uint quarter = 0; quarter < 4; ++quarter) {
    uint bits[2];
    for (uint k = 0; k < 2; ++k) {
      const ushort from = ushort(quarter * 8 + (is_transposed ? pair + k : row));
      const uint begin = simd_shuffle(offset, from) * size;
      bits[k] = words[begin + (is_transposed ? row : pair + k)];
    }
    to[quarter] = bits[0] | bits[1] << 16;
  }
#endif
}

// sums += left right: 16 rows of 32 bytes by 8 columns of as many, which are two quarters.
template <typename T>
METAL_FUNC void multiply_blocks(thread float (&sums)[4], const thread uint (&left)[4], uint upper,
                                uint lower, uint lane) {
#if defined(METALLOID_TENSOR_BLOCKS)
  metalloid::multiply_blocks<T>(sums, left, upper, lower);
#else
  constexpr uint count = tensor_word<T>::count;
  for (uint i = 0; i < 4; ++i) {
    const uint column = lane % 4 * 2 + i % 2;
    for (uint k = 0; k < 8 * count; ++k) {
      const uint word = k / count % 4;
      const bool is_late = k >= 4 * count;
      const uint a = simd_shuffle(left[i / 2 + (is_late ? 2 : 0)], ushort(lane / 4 * 4 + word));
      const uint b = simd_shuffle(is_late ? lower : upper, ushort(column * 4 + word));
      sums[i] = fma(tensor_word<T>::value(a, k % count), tensor_word<T>::value(b, k % count),
                    sums[i]);
    }
  }
#endif
}

// Begins an asynchronous copy of 16 bytes to threadgroup memory, or of zeros. Copies are committed
// in groups; a wait leaves the given number of latest groups in flight.
template <typename T>
METAL_FUNC void begin_copy(threadgroup T *to, device const T *from, bool is_inside) {
#if defined(METALLOID_TENSOR_BLOCKS)
  metalloid::begin_copy(to, from, is_inside);
#else
  uint4 elements = uint4(0);
  if (is_inside) {
    elements = *reinterpret_cast<device const uint4 *>(from);
  }
  *reinterpret_cast<threadgroup uint4 *>(to) = elements;
#endif
}
METAL_FUNC void close_copies() {
#if defined(METALLOID_TENSOR_BLOCKS)
  metalloid::close_copies();
#endif
}
template <uint open>
METAL_FUNC void wait_for_copies() {
#if defined(METALLOID_TENSOR_BLOCKS)
  metalloid::wait_for_copies<open>();
#endif
}

}  // namespace numpy
