// Blocks of 16 x 16 and 16 x 8 elements that a simdgroup holds, as the tensor cores of NVIDIA's
// GPUs want them. Not MSL: kernels of arrays use it on those GPUs. Elsewhere it is made of
// shuffles, for tests.
//
// A register has two elements of 16 bits. The four of a block are its quarters of 8 x 8; a lane has
// elements 2 (lane % 4) and the one behind it of row lane / 4 of each.
#pragma once

#include "metal_simdgroup_matrix.h"

namespace metalloid {

// The quarters of a block in threadgroup memory. Lane 8 q + r says where row r of quarter q begins;
// if they are transposed, those are columns.
template <bool is_transposed, class Source>
METALLOID_INLINE void load_blocks(uint (&to)[4], Source tile, uint offset) {
#if defined(__NVPTX__)
  const uint address = uint(reinterpret_cast<ulong>(tile + offset));
  if constexpr (is_transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  }
#else
  const uint lane = __msl_simd_lane(), row = lane / 4, pair = lane % 4 * 2;
  for (uint quarter = 0; quarter < 4; ++quarter) {
    uint bits[2];
    for (uint k = 0; k < 2; ++k) {
      const ushort from = ushort(quarter * 8 + (is_transposed ? pair + k : row));
      const uint begin = metal::simd_shuffle(offset, from);
      const auto element = tile[begin + (is_transposed ? row : pair + k)];
      bits[k] = __builtin_bit_cast(ushort, element);
    }
    to[quarter] = bits[0] | bits[1] << 16;
  }
#endif
}

// sums += left right: 16 rows of 16 elements by 16 rows of 8. A lane has sums of two rows, lane / 4
// and 8 below it, at the places of its pair.
template <class T>
METALLOID_INLINE void multiply_blocks(float (&sums)[4], const uint (&left)[4], uint upper,
                                      uint lower) {
#if defined(__NVPTX__)
  if constexpr (metal::is_same_v<T, half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(upper), "r"(lower));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(upper), "r"(lower));
  }
#else
  const uint lane = __msl_simd_lane();
  const auto element = [](uint bits, uint k) {
    return float(__builtin_bit_cast(T, ushort(k % 2 != 0 ? bits >> 16 : bits)));
  };
  for (uint i = 0; i < 4; ++i) {
    const uint column = lane % 4 * 2 + i % 2;
    for (uint k = 0; k < 16; ++k) {
      const uint pair = k % 8 / 2;
      const uint a = metal::simd_shuffle(left[i / 2 + k / 8 * 2], ushort(lane / 4 * 4 + pair));
      const uint b = metal::simd_shuffle(k < 8 ? upper : lower, ushort(column * 4 + pair));
      sums[i] = metal::fma(element(a, k), element(b, k), sums[i]);
    }
  }
#endif
}

}  // namespace metalloid
