// Scalar types and address spaces (MSL specification, "Scalar Data Types" and "Address Spaces").
#pragma once

#ifndef METALLOID_INLINE
#define METALLOID_INLINE inline __attribute__((always_inline))
#define METALLOID_INLINE_LAMBDA __attribute__((always_inline))
#endif

// ---- address spaces -----------------------------------------------------------------------------
// In clang's SYCL device mode these attributes give plain C++ Metal's rules: pointers into
// different spaces are different types, and each converts to the unnamed space, which is where
// `this` lives. `thread` is that unnamed space.
#define device __attribute__((opencl_global_device))
#define threadgroup __attribute__((opencl_local))
#define constant const __attribute__((opencl_global))
#define thread

// X(space) for every named space; `constant` comes without the const that the word implies.
#define METALLOID_FOR_EACH_SPACE(X) \
  X(__attribute__((opencl_global_device))) \
  X(__attribute__((opencl_local))) \
  X(__attribute__((opencl_global)))

// ---- scalar types -------------------------------------------------------------------------------
// They are typedefs at global scope, so that a user's own identical typedef is a legal repetition.
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

typedef _Float16 half;
typedef __bf16 bfloat;

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;

typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef decltype(nullptr) nullptr_t;

namespace metal {
using ::uchar;
using ::uint;
using ::ulong;
using ::ushort;

using ::bfloat;
using ::half;

using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;

using ::intptr_t;
using ::nullptr_t;
using ::ptrdiff_t;
using ::size_t;
using ::uintptr_t;
}  // namespace metal

// X(type) for the types that a standard library function is a plain overload for. The `long long`
// pair is left to templates: Metal has it only as an integer of the host's headers.
#define METALLOID_FOR_EACH_SIGNED_INTEGER(X) X(char) X(signed char) X(short) X(int) X(long)
#define METALLOID_FOR_EACH_UNSIGNED_INTEGER(X) X(uchar) X(ushort) X(uint) X(ulong)
#define METALLOID_FOR_EACH_INTEGER(X) \
  METALLOID_FOR_EACH_SIGNED_INTEGER(X) \
  METALLOID_FOR_EACH_UNSIGNED_INTEGER(X)

// X(type) for the element types that have vectors with a name of their own (`float4`, `uchar2`
// ...).
#define METALLOID_FOR_EACH_VECTOR_ELEMENT(X) \
  X(bool) X(char) X(uchar) X(short) X(ushort) X(int) X(uint) X(long) X(ulong) \
  X(half) X(bfloat) X(float)
