// Names of Apple's own headers that published code calls: MLX defines its bfloat functions with
// them. The last argument of a math function is __METAL_FAST_MATH__, __METAL_PRECISE_MATH__ or
// __METAL_MAYBE_FAST_MATH__ and always a constant.
#pragma once

#include "metal_math.h"
#include "metal_simdgroup.h"

#define METALLOID_INTERNAL_MODAL1(name) \
  template <class T> \
  METALLOID_INLINE T __metal_##name(T x, int fast) { \
    return fast ? metal::fast::name(x) : metal::precise::name(x); \
  }
#define METALLOID_INTERNAL_MODAL2(name) \
  template <class T> \
  METALLOID_INLINE T __metal_##name(T x, T y, int fast) { \
    return fast ? metal::fast::name(x, y) : metal::precise::name(x, y); \
  }
METALLOID_FOR_EACH_MODAL_FUNCTION1(METALLOID_INTERNAL_MODAL1)
METALLOID_FOR_EACH_MODAL_FUNCTION2(METALLOID_INTERNAL_MODAL2)
#undef METALLOID_INTERNAL_MODAL1
#undef METALLOID_INTERNAL_MODAL2

#define METALLOID_INTERNAL1(name) \
  template <class T> \
  METALLOID_INLINE T __metal_##name(T x, int fast = 0) { \
    return metal::name(x); \
  }
#define METALLOID_INTERNAL2(name) \
  template <class T> \
  METALLOID_INLINE T __metal_##name(T x, T y, int fast = 0) { \
    return metal::name(x, y); \
  }
#define METALLOID_INTERNAL3(name) \
  template <class T> \
  METALLOID_INLINE T __metal_##name(T x, T y, T z, int fast = 0) { \
    return metal::name(x, y, z); \
  }
METALLOID_INTERNAL1(ceil)
METALLOID_INTERNAL1(fabs)
METALLOID_INTERNAL1(floor)
METALLOID_INTERNAL1(fract)
METALLOID_INTERNAL1(rint)
METALLOID_INTERNAL1(round)
METALLOID_INTERNAL1(trunc)
METALLOID_INTERNAL2(copysign)
METALLOID_INTERNAL2(fdim)
METALLOID_INTERNAL2(fmax)
METALLOID_INTERNAL2(fmin)
METALLOID_INTERNAL2(nextafter)
METALLOID_INTERNAL3(fma)
METALLOID_INTERNAL3(fmax3)
METALLOID_INTERNAL3(fmedian3)
METALLOID_INTERNAL3(fmin3)
#undef METALLOID_INTERNAL1
#undef METALLOID_INTERNAL2
#undef METALLOID_INTERNAL3

template <class T>
METALLOID_INLINE T __metal_ldexp(T x, int exponent, int fast = 0) {
  return metal::ldexp(x, exponent);
}
template <class T>
METALLOID_INLINE T __metal_frexp(T x, thread int* exponent, int fast = 0) {
  return metal::frexp(x, *exponent);
}

// ---- simdgroup functions ------------------------------------------------------------------------
#define METALLOID_INTERNAL_LANE1(name) \
  template <class T> \
  METALLOID_INLINE T __metal_##name(T data) { \
    return metal::name(data); \
  }
#define METALLOID_INTERNAL_LANE_MOVE(name) \
  template <class T> \
  METALLOID_INLINE T __metal_##name(T data, ushort lane) { \
    return metal::name(data, lane); \
  }
#define METALLOID_INTERNAL_LANE_FILL(name) \
  template <class T> \
  METALLOID_INLINE T __metal_##name(T data, T filling, ushort delta, ushort modulo) { \
    return metal::name(data, filling, delta, modulo); \
  }
METALLOID_FOR_EACH_LANE_REDUCTION(METALLOID_INTERNAL_LANE1, simd)
METALLOID_FOR_EACH_LANE_REDUCTION(METALLOID_INTERNAL_LANE1, quad)
METALLOID_FOR_EACH_LANE_BITWISE_REDUCTION(METALLOID_INTERNAL_LANE1, simd)
METALLOID_FOR_EACH_LANE_BITWISE_REDUCTION(METALLOID_INTERNAL_LANE1, quad)
METALLOID_INTERNAL_LANE1(simd_broadcast_first)
METALLOID_INTERNAL_LANE1(quad_broadcast_first)
METALLOID_FOR_EACH_LANE_MOVE(METALLOID_INTERNAL_LANE_MOVE, simd)
METALLOID_FOR_EACH_LANE_MOVE(METALLOID_INTERNAL_LANE_MOVE, quad)
METALLOID_FOR_EACH_LANE_FILL(METALLOID_INTERNAL_LANE_FILL, simd)
METALLOID_FOR_EACH_LANE_FILL(METALLOID_INTERNAL_LANE_FILL, quad)
#undef METALLOID_INTERNAL_LANE1
#undef METALLOID_INTERNAL_LANE_MOVE
#undef METALLOID_INTERNAL_LANE_FILL

// The argument only says which integer type the caller expects.
METALLOID_INLINE constexpr ushort __metal_get_simdgroup_size(ushort = 0) { return 32; }
METALLOID_INLINE ushort __metal_get_thread_index_in_simdgroup(ushort = 0) {
  return ushort(__msl_simd_lane());
}
