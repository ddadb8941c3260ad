// Everything the Metal standard library says in macros, and nothing else.
//
// The driver force-includes this file when it preprocesses the user's text, so that the user's own
// #if and #ifdef see what they would see under Apple's compiler. Types and functions come later,
// from the precompiled metal_stdlib.h. The macros that depend on the target or on a compiler
// setting (__METAL_VERSION__, __HAVE_BFLOAT__, __FAST_MATH__ ...) are given on the command line.
#pragma once

// ---- functions ----------------------------------------------------------------------------------
#define METAL_FUNC inline __attribute__((always_inline))
#define METAL_INTERNAL inline __attribute__((always_inline))
#define METAL_CONST __attribute__((const))
#define METAL_PURE __attribute__((pure))
#define METAL_CONVERGENT __attribute__((convergent))

#define NULL 0
#ifdef NDEBUG
// Not evaluated, yet a variable used only here does not look unused.
#define assert(condition) ((void)sizeof(!(condition)))
#else
#define assert(condition) \
  ((condition) ? (void)0 : __msl_assertion_failed(#condition, __FILE__, __LINE__))
#endif

// Second argument of Apple's internal `__metal_exp(x, mode)` family (metal_internals.h).
#ifdef __FAST_MATH__
#define __METAL_MAYBE_FAST_MATH__ 1
#else
#define __METAL_MAYBE_FAST_MATH__ 0
#endif
#define __METAL_FAST_MATH__ 1
#define __METAL_PRECISE_MATH__ 0

// ---- special values -----------------------------------------------------------------------------
#define INFINITY __builtin_huge_valf()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_huge_valf()
#define HUGE_VALH ((half)__builtin_huge_valf())
#define HUGE_VALBF ((bfloat)__builtin_huge_valf())

#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4
#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN (-2147483647 - 1)

// ---- constants ----------------------------------------------------------------------------------
#define M_E_F 2.71828182845904523536f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG10E_F 0.434294481903251827651f
#define M_LN2_F 0.693147180559945309417f
#define M_LN10_F 2.30258509299404568402f
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_4_F 0.785398163397448309616f
#define M_1_PI_F 0.318309886183790671538f
#define M_2_PI_F 0.636619772367581343076f
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT1_2_F 0.707106781186547524401f

#define M_E_H ((half)M_E_F)
#define M_LOG2E_H ((half)M_LOG2E_F)
#define M_LOG10E_H ((half)M_LOG10E_F)
#define M_LN2_H ((half)M_LN2_F)
#define M_LN10_H ((half)M_LN10_F)
#define M_PI_H ((half)M_PI_F)
#define M_PI_2_H ((half)M_PI_2_F)
#define M_PI_4_H ((half)M_PI_4_F)
#define M_1_PI_H ((half)M_1_PI_F)
#define M_2_PI_H ((half)M_2_PI_F)
#define M_2_SQRTPI_H ((half)M_2_SQRTPI_F)
#define M_SQRT2_H ((half)M_SQRT2_F)
#define M_SQRT1_2_H ((half)M_SQRT1_2_F)

#define M_E_BF ((bfloat)M_E_F)
#define M_LOG2E_BF ((bfloat)M_LOG2E_F)
#define M_LOG10E_BF ((bfloat)M_LOG10E_F)
#define M_LN2_BF ((bfloat)M_LN2_F)
#define M_LN10_BF ((bfloat)M_LN10_F)
#define M_PI_BF ((bfloat)M_PI_F)
#define M_PI_2_BF ((bfloat)M_PI_2_F)
#define M_PI_4_BF ((bfloat)M_PI_4_F)
#define M_1_PI_BF ((bfloat)M_1_PI_F)
#define M_2_PI_BF ((bfloat)M_2_PI_F)
#define M_2_SQRTPI_BF ((bfloat)M_2_SQRTPI_F)
#define M_SQRT2_BF ((bfloat)M_SQRT2_F)
#define M_SQRT1_2_BF ((bfloat)M_SQRT1_2_F)

// ---- limits of the floating-point types ---------------------------------------------------------
#define MAXFLOAT 3.402823466385288598117e+38f
#define MAXHALF ((half)65504.0f)
#define MAXBFLOAT ((bfloat)3.38953138925153547590e+38f)

#define FLT_RADIX 2
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_EXP 128
#define FLT_MIN_EXP (-125)
#define FLT_MAX_10_EXP 38
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX 3.402823466385288598117e+38f
#define FLT_MIN 1.175494350822287507969e-38f
#define FLT_EPSILON 1.1920928955078125e-07f

#define HALF_RADIX 2
#define HALF_DIG 3
#define HALF_MANT_DIG 11
#define HALF_MAX_EXP 16
#define HALF_MIN_EXP (-13)
#define HALF_MAX_10_EXP 4
#define HALF_MIN_10_EXP (-4)
#define HALF_MAX ((half)65504.0f)
#define HALF_MIN ((half)6.103515625e-05f)
#define HALF_EPSILON ((half)0.0009765625f)

#define BFLT_RADIX 2
#define BFLT_DIG 2
#define BFLT_MANT_DIG 8
#define BFLT_MAX_EXP 128
#define BFLT_MIN_EXP (-125)
#define BFLT_MAX_10_EXP 38
#define BFLT_MIN_10_EXP (-37)
#define BFLT_MAX ((bfloat)3.38953138925153547590e+38f)
#define BFLT_MIN ((bfloat)1.175494350822287507969e-38f)
#define BFLT_EPSILON ((bfloat)0.0078125f)

// ---- limits of the integer types ----------------------------------------------------------------
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-9223372036854775807L - 1L)
#define ULONG_MAX 18446744073709551615UL

#define INT8_MAX SCHAR_MAX
#define INT8_MIN SCHAR_MIN
#define UINT8_MAX UCHAR_MAX
#define INT16_MAX SHRT_MAX
#define INT16_MIN SHRT_MIN
#define UINT16_MAX USHRT_MAX
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT32_MAX UINT_MAX
#define INT64_MAX LONG_MAX
#define INT64_MIN LONG_MIN
#define UINT64_MAX ULONG_MAX
#define SIZE_MAX ULONG_MAX
#define PTRDIFF_MAX LONG_MAX
#define PTRDIFF_MIN LONG_MIN
#define INTPTR_MAX LONG_MAX
#define INTPTR_MIN LONG_MIN
#define UINTPTR_MAX ULONG_MAX
