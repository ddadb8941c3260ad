// The names of <simd/simd.h>, which headers shared between Metal and the host use.
#pragma once

#include "metal_matrix.h"

namespace simd {
#define METALLOID_SIMD_VECTOR(type, N) \
  typedef metal::vec<type, N> type##N; \
  typedef metal::packed_vec<type, N> packed_##type##N;
#define METALLOID_SIMD_VECTORS(type) \
  METALLOID_SIMD_VECTOR(type, 2) \
  METALLOID_SIMD_VECTOR(type, 3) \
  METALLOID_SIMD_VECTOR(type, 4)
METALLOID_SIMD_VECTORS(char)
METALLOID_SIMD_VECTORS(uchar)
METALLOID_SIMD_VECTORS(short)
METALLOID_SIMD_VECTORS(ushort)
METALLOID_SIMD_VECTORS(int)
METALLOID_SIMD_VECTORS(uint)
METALLOID_SIMD_VECTORS(long)
METALLOID_SIMD_VECTORS(ulong)
METALLOID_SIMD_VECTORS(half)
METALLOID_SIMD_VECTORS(float)
#undef METALLOID_SIMD_VECTORS
#undef METALLOID_SIMD_VECTOR

#define METALLOID_SIMD_MATRICES(C) \
  typedef metal::matrix<float, C, 2> float##C##x2; \
  typedef metal::matrix<float, C, 3> float##C##x3; \
  typedef metal::matrix<float, C, 4> float##C##x4;
METALLOID_SIMD_MATRICES(2)
METALLOID_SIMD_MATRICES(3)
METALLOID_SIMD_MATRICES(4)
#undef METALLOID_SIMD_MATRICES
}  // namespace simd

// The names for C: simd_float4 and the older vector_float4, simd_float4x4 and matrix_float4x4.
#define METALLOID_C_VECTORS(type) \
  typedef simd::type##2 simd_##type##2, vector_##type##2; \
  typedef simd::type##3 simd_##type##3, vector_##type##3; \
  typedef simd::type##4 simd_##type##4, vector_##type##4; \
  typedef simd::packed_##type##2 simd_packed_##type##2; \
  typedef simd::packed_##type##4 simd_packed_##type##4;
METALLOID_C_VECTORS(char)
METALLOID_C_VECTORS(uchar)
METALLOID_C_VECTORS(short)
METALLOID_C_VECTORS(ushort)
METALLOID_C_VECTORS(int)
METALLOID_C_VECTORS(uint)
METALLOID_C_VECTORS(long)
METALLOID_C_VECTORS(ulong)
METALLOID_C_VECTORS(half)
METALLOID_C_VECTORS(float)
#undef METALLOID_C_VECTORS

#define METALLOID_C_MATRICES(C) \
  typedef simd::float##C##x2 simd_float##C##x2, matrix_float##C##x2; \
  typedef simd::float##C##x3 simd_float##C##x3, matrix_float##C##x3; \
  typedef simd::float##C##x4 simd_float##C##x4, matrix_float##C##x4;
METALLOID_C_MATRICES(2)
METALLOID_C_MATRICES(3)
METALLOID_C_MATRICES(4)
#undef METALLOID_C_MATRICES
