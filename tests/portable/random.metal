#include <metal_stdlib>
using namespace metal;

// What generated kernels of arrays call: operations that MSL does not have, or that have other
// results there than NumPy's. Plain MSL.
namespace numpy {

// What numbers are computed in that are rounded once; MSL's own functions do so with half floats.
template <typename T>
using wide = conditional_t<sizeof(T) < 4, float, T>;

// Integers wrap around. MSL leaves the overflow of signed ones undefined, and short ones are
// computed as int.
template <typename T>
using wrapping = conditional_t<is_floating_point_v<T> || is_same_v<T, bfloat>, T,
                               conditional_t<sizeof(T) == 8, ulong, uint>>;

template <typename T>
METAL_FUNC T add(T a, T b) { return T(wrapping<T>(a) + wrapping<T>(b)); }
template <typename T>
METAL_FUNC T subtract(T a, T b) { return T(wrapping<T>(a) - wrapping<T>(b)); }
template <typename T>
METAL_FUNC T multiply(T a, T b) { return T(wrapping<T>(a) * wrapping<T>(b)); }
template <typename T>
METAL_FUNC T square(T x) { return multiply(x, x); }
METAL_FUNC bool add(bool a, bool b) { return a || b; }
METAL_FUNC bool multiply(bool a, bool b) { return a && b; }

template <typename T>
METAL_FUNC T negative(T x) {
  if constexpr (is_integral_v<T>) {
    return subtract(T(0), x);
  } else {
    return -x;
  }
}

template <typename T>
METAL_FUNC T absolute(T x) {
  if constexpr (is_integral_v<T>) {
    return x < T(0) ? negative(x) : x;
  } else {
    return metal::fabs(x);
  }
}
METAL_FUNC bool absolute(bool x) { return x; }

template <typename T>
METAL_FUNC T reciprocal(T x) { return T(1) / x; }

template <typename T>
METAL_FUNC bool isnan(T x) { return !(x == x); }
template <typename T>
METAL_FUNC bool isinf(T x) {
  if constexpr (is_integral_v<T>) {
    return false;
  } else {
    return x == x && !(x - x == x - x);
  }
}
template <typename T>
METAL_FUNC bool isfinite(T x) {
  if constexpr (is_integral_v<T>) {
    return true;
  } else {
    return x - x == x - x;
  }
}

// NaN if one of them is, as in NumPy; MSL's max and min give the other number.
template <typename T>
METAL_FUNC T maximum(T a, T b) { return a > b || isnan(a) ? a : b; }
template <typename T>
METAL_FUNC T minimum(T a, T b) { return a < b || isnan(a) ? a : b; }

template <typename T>
METAL_FUNC T sign(T x) {
  return isnan(x) ? x : T(int(x > T(0)) - int(x < T(0)));
}

template <typename T>
METAL_FUNC T floor(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::floor(x);
  }
}
template <typename T>
METAL_FUNC T ceil(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::ceil(x);
  }
}
template <typename T>
METAL_FUNC T trunc(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::trunc(x);
  }
}
template <typename T>
METAL_FUNC T round(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::rint(x);
  }
}

// Division by zero gives zero; the least number divided by -1 is itself.
template <typename T>
METAL_FUNC T floor_divide_integers(T a, T b) {
  if (b == T(0)) {
    return T(0);
  }
  if (b == T(-1) && T(-1) < T(0)) {
    return negative(a);
  }
  const T quotient = a / b;
  return a % b != T(0) && (a < T(0)) != (b < T(0)) ? T(quotient - 1) : quotient;
}
// Quotients of infinities and by them stay what they are: the standard asks for it, while NumPy has
// NaN for inf // 2 and -1 for 1 // -inf. The rounded quotient of others may be a whole number off;
// the exact remainder tells how many.
template <typename T>
METAL_FUNC T floor_divide_floats(T a, T b) {
  if (b == T(0) || isinf(a) || isinf(b)) {
    return a / b;
  }
  const T rest = metal::fmod(a, b);
  const bool is_above = rest != T(0) && (b < T(0)) != (rest < T(0));
  T quotient = metal::rint((a - rest) / b);
  if (metal::fabs(quotient) < T(1) / numeric_limits<T>::epsilon()) {
    quotient += metal::rint((metal::fma(-quotient, b, a) - rest) / b);
  }
  quotient -= is_above ? T(1) : T(0);
  return quotient == T(0) ? metal::copysign(T(0), a / b) : quotient;
}
template <typename T>
METAL_FUNC T floor_divide(T a, T b) {
  if constexpr (is_integral_v<T>) {
    return floor_divide_integers(a, b);
  } else {
    return T(floor_divide_floats(wide<T>(a), wide<T>(b)));
  }
}

template <typename T>
METAL_FUNC T remainder(T a, T b) {
  if constexpr (is_integral_v<T>) {
    if (b == T(0) || (b == T(-1) && T(-1) < T(0))) {
      return T(0);
    }
    const T rest = a % b;
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? T(rest + b) : rest;
  } else {
    const wide<T> divisor = wide<T>(b), rest = metal::fmod(wide<T>(a), divisor);
    if (rest == wide<T>(0)) {
      return metal::copysign(T(0), b);
    }
    return T((b < T(0)) != (rest < wide<T>(0)) ? rest + divisor : rest);
  }
}

// Of integers by repeated squares; of negative exponents what is left of the fraction.
template <typename T>
METAL_FUNC T power(T a, T b) {
  if constexpr (is_integral_v<T>) {
    if (b < T(0)) {
      const T odd = T(b & T(1));
      return a == T(1) ? T(1) : a == T(-1) ? (odd != T(0) ? a : T(1)) : T(0);
    }
    T result = T(1);
    for (wrapping<T> left = wrapping<T>(b); left != 0; left >>= 1) {
      result = (left & 1) != 0 ? multiply(result, a) : result;
      a = multiply(a, a);
    }
    return result;
  } else {
    return metal::pow(a, b);
  }
}

// W. Kahan's two, exact where e^x - 1 or log(1 + x) would cancel: the error of the rounded
// argument is divided out. N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 1.14.1.
template <typename T>
METAL_FUNC T expm1(T value) {
  const wide<T> one = wide<T>(1), x = wide<T>(value), power = metal::exp(x), less = power - one;
  if (power == one) {
    return value;
  }
  return T(less == -one || isinf(power) ? less : less * (x / metal::log(power)));
}
template <typename T>
METAL_FUNC T log1p(T value) {
  const wide<T> one = wide<T>(1), x = wide<T>(value), more = one + x;
  if (more == one) {
    return value;
  }
  return T(more == wide<T>(INFINITY) ? more : metal::log(more) * (x / (more - one)));
}

template <typename T>
METAL_FUNC T logaddexp(T a, T b) {
  const wide<T> high = wide<T>(maximum(a, b)), low = wide<T>(minimum(a, b));
  const bool is_special = isinf(high) || isnan(high);
  return T(is_special ? high : high + log1p(metal::exp(low - high)));
}

// The numbers are scaled by a power of two, so that their squares are normal floats.
template <typename T>
METAL_FUNC T hypot(T a, T b) {
  if (isinf(a) || isinf(b)) {
    return T(INFINITY);
  }
  const float x = metal::fabs(float(a)), y = metal::fabs(float(b)), high = maximum(x, y);
  const float scale = high > 0x1p62f ? 0x1p-66f : high < 0x1p-62f ? 0x1p88f : 1.0f;
  const float larger = scale * high, smaller = scale * minimum(x, y);
  return T(metal::sqrt(metal::fma(larger, larger, smaller * smaller)) / scale);
}

template <typename T>
METAL_FUNC T atan2(T y, T x) { return metal::atan2(y, x); }

template <typename T>
METAL_FUNC T invert(T x) { return T(~x); }
METAL_FUNC bool invert(bool x) { return !x; }

// Shifts by the number of bits or more leave nothing but the sign.
// In two steps, neither of them too long: a test clang would leave to an instruction of NVIDIA's,
// which looks at 32 of 64 bits. Negative amounts are large.
template <typename T>
METAL_FUNC T shift_left(T x, T amount) {
  const uint all = uint(metal::min(wrapping<T>(amount), wrapping<T>(8 * sizeof(T))));
  return T(wrapping<T>(x) << (all / 2) << (all - all / 2));
}
template <typename T>
METAL_FUNC T shift_right(T x, T amount) {
  const uint all = uint(metal::min(wrapping<T>(amount), wrapping<T>(8 * sizeof(T))));
  return T(x >> (all / 2) >> (all - all / 2));
}

template <typename T>
METAL_FUNC T real(T x) { return x; }
template <typename T>
METAL_FUNC T imag(T) { return T(0); }
template <typename T>
METAL_FUNC T conj(T x) { return x; }

// What an integer type cannot hold becomes the nearest number that it can, and NaN becomes 0: C++
// leaves both undefined, and NumPy has what the processor does.
template <typename To, typename From>
METAL_FUNC To cast(From x) {
  if constexpr (is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (is_integral_v<To> && !is_integral_v<From>) {
    // The greatest one is rounded up, if at all, so that all below it fit.
    const From least = From(numeric_limits<To>::min()), greatest = From(numeric_limits<To>::max());
    if (x >= greatest) {
      return numeric_limits<To>::max();
    }
    return x > least ? To(x) : isnan(x) ? To(0) : numeric_limits<To>::min();
  } else if constexpr (sizeof(From) == 2 && !is_integral_v<From>) {
    return To(float(x));  // half and bfloat have no conversion to each other
  } else {
    return To(x);
  }
}

// The least and the greatest number of a type: what maxima and minima start from.
template <typename T>
METAL_FUNC T lowest() {
  if constexpr (is_integral_v<T>) {
    return numeric_limits<T>::min();
  } else {
    return T(-INFINITY);
  }
}
template <typename T>
METAL_FUNC T highest() {
  if constexpr (is_integral_v<T>) {
    return numeric_limits<T>::max();
  } else {
    return T(INFINITY);
  }
}

}  // namespace numpy

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

// Special functions of generated kernels. Plain MSL.
namespace numpy {

// x + x Q(x^2) near zero; beyond, erfc is the exponential function of a polynomial. Both were
// fitted by weighted least squares and add 0.02 ULP to the errors of rounding.
METAL_FUNC float erf(float x) {
  const float size = metal::fabs(x), square = x * x;
  float near = 7.853844e-05f;
  near = fma(near, square, -8.01018847e-04f);
  near = fma(near, square, 5.18832728e-03f);
  near = fma(near, square, -2.6853811e-02f);
  near = fma(near, square, 1.12835854e-01f);
  near = fma(near, square, -3.7612626e-01f);
  near = fma(near, square, 1.28379166e-01f);
  const float t = metal::fmin(size, 4.0f);
  float far = 1.86379824e-04f;
  far = fma(far, t, -2.94766459e-03f);
  far = fma(far, t, 2.18380895e-02f);
  far = fma(far, t, -1.03106804e-01f);
  far = fma(far, t, -6.38144791e-01f);
  far = fma(far, t, -1.12708926f);
  far = fma(far, t, -3.41514009e-04f);
  // The comparison is false for NaN.
  return size >= 1.0f ? metal::copysign(1.0f - metal::exp(far), x) : fma(near, x, x);
}

// M. Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition, 2011.
METAL_FUNC float erfinv(float x) {
  const float w = -metal::log((1.0f - x) * (1.0f + x));
  const bool is_central = w < 5.0f;
  const float t = is_central ? w - 2.5f : metal::sqrt(w) - 3.0f;
  float p = is_central ? 2.81022636e-08f : -2.00214257e-04f;
  p = fma(p, t, is_central ? 3.43273939e-07f : 1.00950558e-04f);
  p = fma(p, t, is_central ? -3.5233877e-06f : 1.34934322e-03f);
  p = fma(p, t, is_central ? -4.39150654e-06f : -3.67342844e-03f);
  p = fma(p, t, is_central ? 2.1858087e-04f : 5.73950773e-03f);
  p = fma(p, t, is_central ? -1.25372503e-03f : -7.6224613e-03f);
  p = fma(p, t, is_central ? -4.17768164e-03f : 9.43887047e-03f);
  p = fma(p, t, is_central ? 2.46640727e-01f : 1.00167406f);
  p = fma(p, t, is_central ? 1.50140941f : 2.83297682f);
  return metal::fabs(x) == 1.0f ? x * INFINITY : p * x;
}

template <typename T>
METAL_FUNC T erf(T x) { return T(erf(float(x))); }
template <typename T>
METAL_FUNC T erfinv(T x) { return T(erfinv(float(x))); }

}  // namespace numpy

struct Params {
  long p0_start;
  long p1_start;
  long p2_start;
  long p3_start;
  float n6;
};

kernel void array_symmetric_unit_erfinv_multiply_add(
    device const uint *x0 [[buffer(0)]],
    device const uint *x1 [[buffer(1)]],
    device const float *x2 [[buffer(2)]],
    device float *out [[buffer(3)]],
    constant Params &params [[buffer(4)]],
    uint3 at [[thread_position_in_grid]])
{
  device const uint *p0 = x0 + params.p0_start;
  device const uint *p1 = x1 + params.p1_start;
  device const float *p3 = x2 + params.p3_start;
  device float *to = out;
  const uint v0 = p0[0];
  const uint v1 = p1[0];
  const long v2 = long((params.p2_start)) + long(at.x);
  const uint v3 = numpy::random_bits<uint>(v0, v1, v2);
  const float v4 = numpy::symmetric_unit<float>(v3);
  const float v5 = numpy::erfinv(v4);
  const float v6 = params.n6;
  const float v7 = v5 * v6;
  const float v8 = p3[at.x];
  const float v9 = v7 + v8;
  to[at.x] = v9;
}
