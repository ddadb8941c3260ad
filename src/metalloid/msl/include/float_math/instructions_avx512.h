// Instructions of AVX-512 that take a float apart and put it together, each in place of four to ten
// others. They treat subnormals, infinities and NaN as the formulas that they stand for; so results
// are the same bits as elsewhere.
//
// In kernels they stay calls, because the vectoriser knows them by name (compiler/analysis/target_builtins.py).
#pragma once

#include "core.h"

namespace metalloid::float_math {

METALLOID_INLINE float sum_with_products_of_bfloats(uint32 a, uint32 b, float sum) {
  const uint32 upper = 0xffff0000u;
  return from_bits(a << 16) * from_bits(b << 16) + from_bits(a & upper) * from_bits(b & upper) + sum;
}

}  // namespace metalloid::float_math

#if defined(__AVX512DQ__) && defined(__AVX512VL__) && !defined(__NVPTX__)
#define METALLOID_HAS_AVX512 1

#if defined(__SYCL_DEVICE_ONLY__)
#define METALLOID_INSTRUCTION \
  extern "C" __attribute__((noinline, const, nothrow, visibility("hidden"))) inline
#else
#define METALLOID_INSTRUCTION METALLOID_INLINE
#endif

namespace metalloid::float_math::avx512 {

using floats = float __attribute__((vector_size(16)));

METALLOID_INLINE floats first(float x) { return floats{x, 0.0f, 0.0f, 0.0f}; }

constexpr int current_rounding = 4;

}  // namespace metalloid::float_math::avx512

// x 2^floor(n), rounded once.
METALLOID_INSTRUCTION float __avx512_scalef(float x, float n) {
  using namespace metalloid::float_math::avx512;
  return __builtin_ia32_scalefss_round_mask(first(x), first(n), first(x), 1, current_rounding)[0];
}

// floor(log2 |x|); -inf for 0, inf for infinities.
METALLOID_INSTRUCTION float __avx512_getexp(float x) {
  using namespace metalloid::float_math::avx512;
  return __builtin_ia32_getexpss128_round_mask(first(x), first(x), first(x), 1, current_rounding)[0];
}

// x times the power of two that brings it into [3/4, 3/2); 1 for 0 and inf, NaN for negative x.
METALLOID_INSTRUCTION float __avx512_getmant(float x) {
  using namespace metalloid::float_math::avx512;
  constexpr int from_three_quarters = 3, nan_if_negative = 3 << 2;
  return __builtin_ia32_getmantss_round_mask(first(x), first(x), from_three_quarters | nan_if_negative,
                                       first(x), 1, current_rounding)[0];
}

// |x| times the power of two that brings it into [1, 2); 1 for 0 and inf.
METALLOID_INSTRUCTION float __avx512_getmant_from_1(float x) {
  using namespace metalloid::float_math::avx512;
  constexpr int from_1 = 0, positive = 1 << 2;
  return __builtin_ia32_getmantss_round_mask(first(x), first(x), from_1 | positive, first(x), 1,
                                       current_rounding)[0];
}

#if defined(METALLOID_HAS_BFLOAT_DOTS)
// The instruction takes subnormals for zeros. One thread does without: see host.py.
METALLOID_INSTRUCTION float __avx512_dot_of_bfloats(float sum, float a, float b) {
  using namespace metalloid::float_math;
  return sum_with_products_of_bfloats(bits_of(a), bits_of(b), sum);
}
#endif

#undef METALLOID_INSTRUCTION
#endif

namespace metalloid {

// sum plus the products of two pairs of bfloats, in any order; of each pair the first is in the lower
// half. Subnormals may count as zeros.
METALLOID_INLINE float dot_of_bfloats(float_math::uint32 a, float_math::uint32 b, float sum) {
#if defined(METALLOID_HAS_AVX512) && defined(METALLOID_HAS_BFLOAT_DOTS)
  return __avx512_dot_of_bfloats(sum, float_math::from_bits(a), float_math::from_bits(b));
#else
  return float_math::sum_with_products_of_bfloats(a, b, sum);
#endif
}

// Begin to load a cache line that is soon read; its address need not be one of memory. Not on GPUs.
METALLOID_INLINE void prefetch(const void *from) {
#if !defined(__NVPTX__)
  __builtin_prefetch(from);
#endif
}

}  // namespace metalloid
