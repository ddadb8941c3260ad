// Random numbers by counting: each is a function of a key and of its place. Plain MSL.
namespace numpy {

template <ushort A, ushort B, ushort C, ushort D>
METAL_FUNC uint2 threefry_rounds(uint2 x) {
  x.x += x.y;
  x.y = rotate(x.y, uint(A)) ^ x.x;
  x.x += x.y;
  x.y = rotate(x.y, uint(B)) ^ x.x;
  x.x += x.y;
  x.y = rotate(x.y, uint(C)) ^ x.x;
  x.x += x.y;
  x.y = rotate(x.y, uint(D)) ^ x.x;
  return x;
}

// Threefry-2x32 with 20 rounds. J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers:
// as easy as 1, 2, 3", SC11.
METAL_FUNC uint2 threefry(uint2 key, uint2 counter) {
  const uint parity = key.x ^ key.y ^ 0x1BD11BDAu;
  uint2 x = counter + key;
  x = threefry_rounds<13, 15, 26, 6>(x) + uint2(key.y, parity + 1);
  x = threefry_rounds<17, 29, 16, 24>(x) + uint2(parity, key.x + 2);
  x = threefry_rounds<13, 15, 26, 6>(x) + uint2(key.x, key.y + 3);
  x = threefry_rounds<17, 29, 16, 24>(x) + uint2(key.y, parity + 4);
  return threefry_rounds<13, 15, 26, 6>(x) + uint2(parity, key.x + 5);
}

METAL_FUNC uint2 threefry(uint key0, uint key1, long place) {
  return threefry(uint2(key0, key1), uint2(uint(ulong(place) >> 32), uint(place)));
}

// The random bits of a place: all 64 of a block, or both halves folded into one, as JAX has it.
template <typename T>
METAL_FUNC T random_bits(uint key0, uint key1, long place) {
  const uint2 words = threefry(key0, key1, place);
  if constexpr (sizeof(T) == 8) {
    return (ulong(words.x) << 32) | words.y;
  } else {
    return T(words.x ^ words.y);
  }
}

// A word of the key that belongs to a place.
METAL_FUNC uint key_word(uint key0, uint key1, long place, long word) {
  const uint2 words = threefry(key0, key1, place);
  return word == 0 ? words.x : words.y;
}

// In [0, 1), as many bits as the type's fraction has.
template <typename T>
METAL_FUNC T unit(uint bits) {
  constexpr uint digits = is_same_v<T, half> ? 11 : is_same_v<T, bfloat> ? 8 : 24;
  return T(float(int(bits >> (32 - digits))) * (1.0f / float(1u << digits)));
}
template <typename T>
METAL_FUNC T unit(ulong bits) {
  return T(long(bits >> 11)) * as_type<T>(0x3CA0000000000000ul);  // 2^-53
}

// In (0, 1), finest near 0: for logarithms.
template <typename T>
METAL_FUNC T open_unit(uint bits) {
  return metal::fmin((T(bits) + T(0.5f)) * T(0x1p-32f), T(1.0f - 0x1p-24f));
}
template <typename T>
METAL_FUNC T open_unit(ulong bits) {
  const T small = as_type<T>(0x3CA0000000000000ul);  // 2^-53
  const T x = (T(long(bits >> 11)) + T(0.5f)) * small;
  return x < T(1) ? x : T(1) - small;
}

// In (-1, 1), the odd multiples of 2^-24 or 2^-53: as many above 0 as below, and never 0.
template <typename T>
METAL_FUNC T symmetric_unit(uint bits) {
  return T(int(bits >> 8) * 2 + 1 - (1 << 24)) * T(0x1p-24f);
}
template <typename T>
METAL_FUNC T symmetric_unit(ulong bits) {
  return T(long(bits >> 11) * 2 + 1 - (1l << 53)) * as_type<T>(0x3CA0000000000000ul);
}

// In [0, span): the upper half of the product. Each comes floor(2^64 / span) times, or once more.
METAL_FUNC ulong below(ulong bits, ulong span) { return mulhi(bits, span); }
METAL_FUNC ulong below(ulong bits, uint span) {
  const ulong low = (bits & 0xFFFFFFFFul) * span;
  return ((bits >> 32) * span + (low >> 32)) >> 32;
}

}  // namespace numpy
