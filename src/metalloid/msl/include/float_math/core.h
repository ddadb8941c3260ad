// What every float_math header shares: the function macros, bit access and polynomial evaluation.
//
// The code is written for three compilers at once: clang for x86-64, clang for NVPTX (no libm to
// link) and the SPMD pass that turns one scalar thread into 16 or 32 vector lanes. Hence the rules:
//   * no branches: choose() instead of `?:`, & and | instead of && and ||;
//   * no library calls: only builtins that LLVM expands in line on both targets;
//   * no double, no tables: both are slow or impossible to vectorise on one of the targets. (On one
//     that has a use for tables, they are in a header of its own: power_avx512.h.)
#pragma once

#define METALLOID_INLINE inline __attribute__((always_inline))

// First line of every body that rounds. Error-free transforms, magic-number rounding and special
// values break when the optimiser reassociates, contracts or drops NaN, and users may compile
// kernels with fast-math flags. `float_control` switches all of these off. NVPTX and SPIR-V refuse
// it, and NVPTX's back end contracts under -ffp-contract=fast whatever the pragmas say; so there
// division, square root and products that must not fuse go through intrinsics (the *_rounded
// functions).
#if defined(__NVPTX__) || defined(__SPIRV__)
#define METALLOID_STRICT_FP _Pragma("clang fp reassociate(off) reciprocal(off) contract(off)")
#else
#define METALLOID_STRICT_FP _Pragma("float_control(precise, on)") _Pragma("clang fp contract(off)")
#endif

#if defined(__SPIRV__)
[[clang::sycl_external]] __attribute__((convergent, nothrow)) bool __spirv_GroupNonUniformAny(int,
                                                                                              bool);
#endif

namespace metalloid::float_math {

using int32 = int;
using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;
static_assert(sizeof(uint32) == 4 && sizeof(uint64) == 8);

constexpr uint32 sign_mask = 0x80000000u;
constexpr uint32 magnitude_mask = 0x7fffffffu;
constexpr uint32 mantissa_mask = 0x007fffffu;
constexpr uint32 infinity_bits = 0x7f800000u;
constexpr uint32 nan_bits = 0x7fc00000u;
constexpr uint32 one_bits = 0x3f800000u;

METALLOID_INLINE uint32 bits_of(float x) { return __builtin_bit_cast(uint32, x); }
METALLOID_INLINE float from_bits(uint32 bits) { return __builtin_bit_cast(float, bits); }

METALLOID_INLINE float infinity() { return from_bits(infinity_bits); }
METALLOID_INLINE float quiet_nan() { return from_bits(nan_bits); }

// The condition of a branch that few threads need, and that computes nothing for the others. Drivers
// for SPIR-V may let a subgroup run both sides of a branch that diverges, so there it does not.
METALLOID_INLINE bool any_thread(bool condition) {
#if defined(__SPIRV__)
  return __spirv_GroupNonUniformAny(3, condition);
#else
  return condition;
#endif
}

// Classification looks at the bits: `x != x` is folded away under fast-math.
METALLOID_INLINE uint32 magnitude_bits(float x) { return bits_of(x) & magnitude_mask; }
METALLOID_INLINE uint32 sign_bit(float x) { return bits_of(x) & sign_mask; }
METALLOID_INLINE bool is_negative(float x) { return static_cast<int32>(bits_of(x)) < 0; }
METALLOID_INLINE bool is_nan(float x) { return magnitude_bits(x) > infinity_bits; }
METALLOID_INLINE bool is_infinite(float x) { return magnitude_bits(x) == infinity_bits; }
METALLOID_INLINE bool is_zero(float x) { return magnitude_bits(x) == 0; }
METALLOID_INLINE bool is_nan_or_infinite(float x) { return magnitude_bits(x) >= infinity_bits; }
METALLOID_INLINE bool is_zero_or_infinite(float x) {
  const uint32 bits = magnitude_bits(x);
  return (bits == 0) | (bits == infinity_bits);
}
METALLOID_INLINE bool is_zero_nan_or_infinite(float x) {
  return magnitude_bits(x) - 1u >= infinity_bits - 1u;
}
METALLOID_INLINE bool is_positive_finite(float x) { return bits_of(x) - 1u < infinity_bits - 1u; }
METALLOID_INLINE bool either_is_nan(float x, float y) {
  const uint32 bits_x = magnitude_bits(x);
  const uint32 bits_y = magnitude_bits(y);
  return (bits_x > bits_y ? bits_x : bits_y) > infinity_bits;
}

// Selects a float; use nothing else. It selects bits, because clang puts fast-math flags on a float
// `?:` even where pragmas forbid them, and evaluates both arms, because a function does.
METALLOID_INLINE float choose(bool condition, float if_true, float if_false) {
  const uint32 bits_true = bits_of(if_true);
  const uint32 bits_false = bits_of(if_false);
  return from_bits(condition ? bits_true : bits_false);
}

METALLOID_INLINE float absolute(float x) { return from_bits(magnitude_bits(x)); }
// Not by hand, `(m & 0x7fffffff) | (s & 0x80000000)`: LLVM 22 merges that with a following choice
// into one AVX-512 instruction (a masked vpternlog) that takes its bits from the wrong operand.
METALLOID_INLINE float with_sign_of(float magnitude, float sign) {
  return __builtin_copysignf(magnitude, sign);
}
METALLOID_INLINE float flip_sign(float x, uint32 sign) { return from_bits(bits_of(x) ^ sign); }

METALLOID_INLINE float fused(float a, float b, float c) {
  return __builtin_elementwise_fma(a, b, c);
}

// Clamps that keep NaN. The operand order is the one that becomes a single min or max on x86.
METALLOID_INLINE float at_most(float x, float limit) {
  METALLOID_STRICT_FP
  return choose(limit < x, limit, x);
}
METALLOID_INLINE float at_least(float x, float limit) {
  METALLOID_STRICT_FP
  return choose(limit > x, limit, x);
}

// Correctly rounded whatever the fast-math flags say.
METALLOID_INLINE float divide_rounded(float x, float y) {
  METALLOID_STRICT_FP
#if defined(__NVPTX__)
  return __nvvm_div_rn_f(x, y);
#else
  return x / y;
#endif
}
METALLOID_INLINE float multiply_rounded(float x, float y) {
  METALLOID_STRICT_FP
#if defined(__NVPTX__)
  return __nvvm_mul_rn_f(x, y);
#else
  return x * y;
#endif
}
METALLOID_INLINE float sqrt_rounded(float x) {
  METALLOID_STRICT_FP
#if defined(__NVPTX__)
  return __nvvm_sqrt_rn_f(x);
#else
  return __builtin_elementwise_sqrt(x);
#endif
}

// c0 + c1 x + c2 x^2 + ... by Horner's rule: in wide SIMD the other vectors of a simdgroup hide its
// latency, and no scheme needs fewer operations or rounds less.
METALLOID_INLINE float polynomial(float, float c0) { return c0; }
template <class... Rest>
METALLOID_INLINE float polynomial(float x, float c0, float c1, Rest... rest) {
  return fused(polynomial(x, c1, rest...), x, c0);
}

// round_shift + v, |v| < 2^22, leaves v rounded to an integer (ties to even) in the low mantissa
// bits; subtracting round_shift gives it back as a float. One addition replaces rint and a convert.
constexpr float round_shift = 0x1.8p23f;

// x = mantissa * 2^exponent with 1 <= |mantissa| < 2, for finite x != 0, subnormals included.
struct Normalized {
  float mantissa;
  int32 exponent;
};
METALLOID_INLINE Normalized normalize(float x) {
  METALLOID_STRICT_FP
  const bool subnormal = magnitude_bits(x) < 0x00800000u;
  const float lifted = x * 0x1p24f;
  const uint32 bits = bits_of(choose(subnormal, lifted, x));
  const int32 bias = subnormal ? 127 + 24 : 127;
  const float mantissa = from_bits((bits & ~infinity_bits) | one_bits);
  return {mantissa, static_cast<int32>((bits >> 23) & 0xffu) - bias};
}

// value * 2^n, rounded once, for -252 <= n <= 254 and 2^-1 < |value| < 2^2 (or 0, inf, NaN).
// 2^n alone may not be a float, so it is split in two powers; the first product is exact.
// `biased` holds n + 254 in its low ten bits and anything in a multiple of 2^10 above them.
constexpr int32 scale_bias = 254;
METALLOID_INLINE float scale_by_power_of_two(float value, uint32 biased) {
  METALLOID_STRICT_FP
  const uint32 half = biased >> 1;
  const float first = from_bits(half << 23);
  const float second = from_bits((biased - half) << 23);
  return value * first * second;
}

}  // namespace metalloid::float_math
