// The fast functions that NVIDIA GPUs have in hardware: one or two instructions instead of a
// polynomial. Largest errors measured on an H200: exp 0.65 and exp2 0.62 of the 3 + floor(|2x|) ulp
// allowed; log2 0.75 and log10 0.84 of the 3 ulp allowed; log 1.07 of those (2^-21 absolute in
// [1/2, 2]), and 1.11 between 0.35 and 0.5; sin and cos 2^-21.2 absolute in [-pi, pi]; sqrt 0.94
// ulp, rsqrt 1.6, divide 2. exp10 is not here, because rounding x log2(10) alone exceeds its bound.
// Portable versions: the family headers.
#pragma once

#include "constants.h"
#include "core.h"

#if defined(__NVPTX__)

namespace metalloid::fast {

METALLOID_INLINE float exp2(float x) { return __nvvm_ex2_approx_f(x); }
METALLOID_INLINE float exp(float x) { return exp2(x * float_math::log2_e); }

METALLOID_INLINE float log2(float x) { return __nvvm_lg2_approx_f(x); }
METALLOID_INLINE float log(float x) { return log2(x) * float_math::ln2_high; }
METALLOID_INLINE float log10(float x) { return log2(x) * float_math::log10_2_high; }

METALLOID_INLINE float sin(float x) { return __nvvm_sin_approx_f(x); }
METALLOID_INLINE float cos(float x) { return __nvvm_cos_approx_f(x); }

METALLOID_INLINE float sqrt(float x) { return __nvvm_sqrt_approx_f(x); }
METALLOID_INLINE float rsqrt(float x) { return __nvvm_rsqrt_approx_f(x); }

// div.full, unlike div.approx, takes any divisor; no builtin names it.
METALLOID_INLINE float divide(float x, float y) {
  float quotient;
  asm("div.full.f32 %0, %1, %2;" : "=f"(quotient) : "f"(x), "f"(y));
  return quotient;
}

}  // namespace metalloid::fast

#endif
