// Sums over the lanes of a simdgroup. Plain MSL.
namespace nn {

// The sums over all lanes of `count` numbers: that of index i in lane i, and in every `count`-th lane
// from there on.
template <ushort count>
METAL_FUNC float sum_lanes(thread float *sums, ushort lane) {
  #pragma clang loop unroll(full)
  for (ushort bit = count / 2; bit > 0; bit /= 2) {
    const bool is_upper = lane & bit;
    #pragma clang loop unroll(full)
    for (ushort i = 0; i < bit; ++i) {
      const float other = is_upper ? sums[i] : sums[i + bit];
      sums[i] = (is_upper ? sums[i + bit] : sums[i]) + simd_shuffle_xor(other, bit);
    }
  }
  #pragma clang loop unroll(full)
  for (ushort bit = count; bit < 32; bit *= 2) {
    sums[0] += simd_shuffle_xor(sums[0], bit);
  }
  return sums[0];
}

}  // namespace nn
