// What generated kernels with reductions call. Plain MSL.
namespace numpy {

// What the lane `distance` away has. MSL shuffles no 64-bit numbers and no truth values.
template <typename T>
METAL_FUNC T from_lane(T x, ushort distance) {
  if constexpr (sizeof(T) == 8) {
    return as_type<T>(simd_shuffle_xor(as_type<uint2>(x), distance));
  } else if constexpr (is_same_v<T, bool>) {
    return simd_shuffle_xor(ushort(x), distance) != 0;
  } else {
    return simd_shuffle_xor(x, distance);
  }
}

}  // namespace numpy
