// Instructions of AVX-512 that take a float apart and put it together, each in place of four to ten
// others. They treat subnormals, infinities and NaN as the formulas that they stand for; so results
// are the same bits as elsewhere.
//
// In kernels they stay calls, because the vectoriser knows them by name (compiler/analysis/target_builtins.py).
#pragma once

#include "core.h"

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

#undef METALLOID_INSTRUCTION
#endif
