// The fast functions that NVIDIA GPUs have in hardware: one or two instructions instead of a
// polynomial. Bounds from the PTX ISA manual, 9.7.3: ex2 2 ulp, lg2 2^-22 absolute in [1/2, 2] and
// relative outside, sin and cos 2^-20.5 absolute in [-2 pi, 2 pi], rsqrt 2^-22.9, sqrt 2^-23 and
// rcp 2^-23 relative. The portable versions stand in the family headers.
#pragma once

#include "constants.h"
#include "core.h"

#if defined(__NVPTX__)

namespace metalloid::fast {

METALLOID_INLINE float exp2(float x) { return __nvvm_ex2_approx_f(x); }
METALLOID_INLINE float exp(float x) { return exp2(x * float_math::log2_e); }
METALLOID_INLINE float exp10(float x) { return exp2(x * float_math::log2_10); }

METALLOID_INLINE float log2(float x) { return __nvvm_lg2_approx_f(x); }
METALLOID_INLINE float log(float x) { return log2(x) * float_math::ln2_high; }
METALLOID_INLINE float log10(float x) { return log2(x) * float_math::log10_2_high; }

METALLOID_INLINE float sin(float x) { return __nvvm_sin_approx_f(x); }
METALLOID_INLINE float cos(float x) { return __nvvm_cos_approx_f(x); }

METALLOID_INLINE float sqrt(float x) { return __nvvm_sqrt_approx_f(x); }
METALLOID_INLINE float rsqrt(float x) { return __nvvm_rsqrt_approx_f(x); }
METALLOID_INLINE float divide(float x, float y) { return __nvvm_div_approx_f(x, y); }

}  // namespace metalloid::fast

#endif
