// Counter-based random numbers: each is a function of a key and of its offset. Plain MSL.
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

METAL_FUNC uint2 threefry(uint key0, uint key1, long offset) {
  return threefry(uint2(key0, key1), uint2(uint(ulong(offset) >> 32), uint(offset)));
}

// The random bits at an offset: all 64 of a block, or both halves folded into one, as JAX has it.
template <typename T>
METAL_FUNC T random_bits(uint key0, uint key1, long offset) {
  const uint2 words = threefry(key0, key1, offset);
  if constexpr (sizeof(T) == 8) {
    return (ulong(words.x) << 32) | words.y;
  } else {
    return T(words.x ^ words.y);
  }
}

// A word of the key for an offset.
METAL_FUNC uint key_word(uint key0, uint key1, long offset, long word) {
  const uint2 words = threefry(key0, key1, offset);
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

// -- the Poisson distribution, of a key of its own

// D. Knuth, "The Art of Computer Programming" 2, 3.4.1: as many uniform numbers as keep their
// product above a limit.
METAL_FUNC long poisson_by_products(uint2 key, float mean) {
  const float limit = metal::exp(-mean);
  float product = 1.0f;
  for (uint block = 0;; ++block) {
    const uint2 words = threefry(key, uint2(0, block));
    product *= open_unit<float>(words.x);
    if (product <= limit) return 2l * block;
    product *= open_unit<float>(words.y);
    if (product <= limit) return 2l * block + 1;
  }
}

// The logarithm of the probability of mean + away events, which are `count`. C. Loader, "Fast and
// accurate computation of binomial probabilities", 2000.
METAL_FUNC float poisson_logarithm(float count, float mean, float away) {
  if (count < 0.5f) return -mean;
  const float over = 1.0f / count, square = over * over;
  float rest = over * (1.0f / 12 - square * (1.0f / 360 - square * (1.0f / 1260 - square / 1680)));
  if (count < 3.5f) rest = count < 1.5f ? 0.08106147f : count < 2.5f ? 0.0413407f : 0.02767793f;
  const float v = away / (mean + count), s = v * v;
  const float series = 1.0f / 3 + s * (1.0f / 5 + s * (1.0f / 7 + s / 9));
  const float near = away * v + 2.0f * count * v * s * series;
  const float far = count * metal::log(count / mean) - away;
  return -rest - (s < 0.01f ? near : far) - 0.5f * metal::log(6.2831855f * count);
}

// W. Hoermann, "The transformed rejection method for generating Poisson random variables", 1993.
METAL_FUNC long poisson_by_rejection(uint2 key, float mean) {
  const float b = 0.931f + 2.53f * metal::sqrt(mean), a = 0.02483f * b - 0.059f;
  const float top = 1.1239f + 1.1328f / (b - 3.4f), sure = 0.9277f - 3.6224f / (b - 2.0f);
  // What is away from the mean is rounded, not the number itself: above 2^24 floats have gaps.
  const float integer = metal::floor(mean), part = mean - integer;
  for (uint block = 0;; ++block) {
    const uint2 words = threefry(key, uint2(0, block));
    const float edge_distance = 0.5f * open_unit<float>(words.x << 1), height = open_unit<float>(words.y);
    const float from_middle = words.x >> 31 ? edge_distance - 0.5f : 0.5f - edge_distance;
    const float steps = metal::floor((2.0f * a / edge_distance + b) * from_middle + (part + 0.43f));
    const long count = long(integer) + long(steps);
    if (edge_distance >= 0.07f && height <= sure) return count;
    if (count < 0 || (edge_distance < 0.013f && height > edge_distance)) continue;
    const float density = metal::log(height * top / (a / (edge_distance * edge_distance) + b));
    if (density <= poisson_logarithm(float(count), mean, steps - part)) return count;
  }
}

METAL_FUNC long poisson(uint key0, uint key1, long offset, float mean) {
  if (!(mean >= 0.0f && mean <= 0x1p60f)) return -1;
  const uint2 own = threefry(key0, key1, offset);
  return mean < 10.0f ? poisson_by_products(own, mean) : poisson_by_rejection(own, mean);
}

}  // namespace numpy
