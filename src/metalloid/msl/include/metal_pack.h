// The chapter "Pack and Unpack Functions" of the MSL specification: normalised integers in a word.
//
// unorm maps 0 ... 1 to 0 ... 2^bits - 1, snorm maps -1 ... 1 to -(2^(bits - 1) - 1) ... 2^(bits -
// 1) - 1; both saturate, take NaN for 0 and round to the nearest even integer. The first component
// goes to the lowest bits.
#pragma once

#include "metal_common.h"
#include "metal_integer.h"

namespace metalloid {

METALLOID_INLINE uint pack_unorm(float x, int bits, int offset) {
  float scale = float((1 << bits) - 1);
  return uint(__builtin_rintf(saturate(x) * scale)) << offset;
}
METALLOID_INLINE uint pack_snorm(float x, int bits, int offset) {
  float scale = float((1 << (bits - 1)) - 1);
  int value = int(__builtin_rintf((x == x ? clamp(x, -1.0f, 1.0f) : 0.0f) * scale));
  return (uint(value) & ((1u << bits) - 1)) << offset;
}

METALLOID_INLINE float unpack_unorm(uint word, int bits, int offset) {
  float scale = float((1 << bits) - 1);
  return float(word >> offset & ((1u << bits) - 1)) / scale;
}
METALLOID_INLINE float unpack_snorm(uint word, int bits, int offset) {
  float scale = float((1 << (bits - 1)) - 1);
  int value = int(word << (32 - bits - offset)) >> (32 - bits);
  return max(float(value) / scale, -1.0f);
}

METALLOID_INLINE float srgb_from_linear(float x) {
  x = saturate(x);
  return x <= 0.0031308f ? x * 12.92f : 1.055f * precise::powr(x, 1.0f / 2.4f) - 0.055f;
}
METALLOID_INLINE float linear_from_srgb(float x) {
  return x <= 0.04045f ? x / 12.92f : precise::powr((x + 0.055f) / 1.055f, 2.4f);
}

}  // namespace metalloid

namespace metal {

// ---- four times 8 bits --------------------------------------------------------------------------
METALLOID_INLINE uint pack_float_to_unorm4x8(float4 v) {
  using metalloid::pack_unorm;
  return pack_unorm(v.x, 8, 0) | pack_unorm(v.y, 8, 8) | pack_unorm(v.z, 8, 16) |
         pack_unorm(v.w, 8, 24);
}
METALLOID_INLINE uint pack_float_to_snorm4x8(float4 v) {
  using metalloid::pack_snorm;
  return pack_snorm(v.x, 8, 0) | pack_snorm(v.y, 8, 8) | pack_snorm(v.z, 8, 16) |
         pack_snorm(v.w, 8, 24);
}
METALLOID_INLINE float4 unpack_unorm4x8_to_float(uint word) {
  using metalloid::unpack_unorm;
  return float4(unpack_unorm(word, 8, 0), unpack_unorm(word, 8, 8), unpack_unorm(word, 8, 16),
                unpack_unorm(word, 8, 24));
}
METALLOID_INLINE float4 unpack_snorm4x8_to_float(uint word) {
  using metalloid::unpack_snorm;
  return float4(unpack_snorm(word, 8, 0), unpack_snorm(word, 8, 8), unpack_snorm(word, 8, 16),
                unpack_snorm(word, 8, 24));
}

// Colours in sRGB; alpha stays linear.
METALLOID_INLINE uint pack_float_to_srgb_unorm4x8(float4 v) {
  using metalloid::srgb_from_linear;
  return pack_float_to_unorm4x8(
      float4(srgb_from_linear(v.r), srgb_from_linear(v.g), srgb_from_linear(v.b), v.a));
}
METALLOID_INLINE float4 unpack_unorm4x8_srgb_to_float(uint word) {
  using metalloid::linear_from_srgb;
  float4 v = unpack_unorm4x8_to_float(word);
  return float4(linear_from_srgb(v.r), linear_from_srgb(v.g), linear_from_srgb(v.b), v.a);
}

// ---- twice 16 bits ------------------------------------------------------------------------------
METALLOID_INLINE uint pack_float_to_unorm2x16(float2 v) {
  return metalloid::pack_unorm(v.x, 16, 0) | metalloid::pack_unorm(v.y, 16, 16);
}
METALLOID_INLINE uint pack_float_to_snorm2x16(float2 v) {
  return metalloid::pack_snorm(v.x, 16, 0) | metalloid::pack_snorm(v.y, 16, 16);
}
METALLOID_INLINE float2 unpack_unorm2x16_to_float(uint word) {
  return float2(metalloid::unpack_unorm(word, 16, 0), metalloid::unpack_unorm(word, 16, 16));
}
METALLOID_INLINE float2 unpack_snorm2x16_to_float(uint word) {
  return float2(metalloid::unpack_snorm(word, 16, 0), metalloid::unpack_snorm(word, 16, 16));
}

// ---- 10 + 10 + 10 + 2 and 5 + 6 + 5 bits --------------------------------------------------------
METALLOID_INLINE uint pack_float_to_unorm10a2(float4 v) {
  using metalloid::pack_unorm;
  return pack_unorm(v.x, 10, 0) | pack_unorm(v.y, 10, 10) | pack_unorm(v.z, 10, 20) |
         pack_unorm(v.w, 2, 30);
}
METALLOID_INLINE float4 unpack_unorm10a2_to_float(uint word) {
  using metalloid::unpack_unorm;
  return float4(unpack_unorm(word, 10, 0), unpack_unorm(word, 10, 10), unpack_unorm(word, 10, 20),
                unpack_unorm(word, 2, 30));
}
METALLOID_INLINE ushort pack_float_to_unorm565(float3 v) {
  using metalloid::pack_unorm;
  return ushort(pack_unorm(v.x, 5, 0) | pack_unorm(v.y, 6, 5) | pack_unorm(v.z, 5, 11));
}
METALLOID_INLINE float3 unpack_unorm565_to_float(ushort word) {
  using metalloid::unpack_unorm;
  return float3(unpack_unorm(word, 5, 0), unpack_unorm(word, 6, 5), unpack_unorm(word, 5, 11));
}

// ---- the same from and to half ------------------------------------------------------------------
#define METALLOID_HALF_PACKING(Word, N, packed) \
  METALLOID_INLINE Word pack_half_to_##packed(half##N v) { \
    return pack_float_to_##packed(float##N(v)); \
  }
#define METALLOID_HALF_UNPACKING(Word, N, packed) \
  METALLOID_INLINE half##N unpack_##packed##_to_half(Word word) { \
    return half##N(unpack_##packed##_to_float(word)); \
  }
METALLOID_HALF_PACKING(uint, 4, unorm4x8)
METALLOID_HALF_PACKING(uint, 4, snorm4x8)
METALLOID_HALF_PACKING(uint, 4, srgb_unorm4x8)
METALLOID_HALF_PACKING(uint, 2, unorm2x16)
METALLOID_HALF_PACKING(uint, 2, snorm2x16)
METALLOID_HALF_PACKING(uint, 4, unorm10a2)
METALLOID_HALF_PACKING(ushort, 3, unorm565)
METALLOID_HALF_UNPACKING(uint, 4, unorm4x8)
METALLOID_HALF_UNPACKING(uint, 4, snorm4x8)
METALLOID_HALF_UNPACKING(uint, 4, unorm4x8_srgb)
METALLOID_HALF_UNPACKING(uint, 2, unorm2x16)
METALLOID_HALF_UNPACKING(uint, 2, snorm2x16)
METALLOID_HALF_UNPACKING(uint, 4, unorm10a2)
METALLOID_HALF_UNPACKING(ushort, 3, unorm565)
#undef METALLOID_HALF_PACKING
#undef METALLOID_HALF_UNPACKING

}  // namespace metal
