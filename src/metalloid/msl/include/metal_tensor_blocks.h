// Blocks of 16 x 16 and 16 x 8 elements that a simdgroup holds, as the tensor cores of NVIDIA's
// GPUs want them. Not MSL: texts that use it ask for METALLOID_TENSOR_BLOCKS, which arrays define
// for these GPUs (runtime/traits.py).
//
// A register has two elements of 16 bits. The four of a block are its quarters of 8 x 8; a lane has
// elements 2 (lane % 4) and the one after it of row lane / 4 of each.
#pragma once

#include "metal_type_traits.h"

#if defined(__NVPTX__)
namespace metalloid {

// The quarters of a block in threadgroup memory. Lane 8 q + r says where row r of quarter q begins;
// if they are transposed, those are columns.
template <bool is_transposed, class Source>
METALLOID_INLINE void load_blocks(uint (&to)[4], Source tile, uint offset) {
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
}

// sums += left right: 16 rows of 16 elements by 16 rows of 8. A lane has sums of two rows, lane / 4
// and 8 below it, at the positions of its pair.
template <class T>
METALLOID_INLINE void multiply_blocks(float (&sums)[4], const uint (&left)[4], uint upper,
                                      uint lower) {
  if constexpr (metal::is_same_v<T, half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(upper), "r"(lower));
  } else if constexpr (metal::is_same_v<T, float>) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
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
}

// Begins an asynchronous copy of 16 bytes to threadgroup memory, or of zeros.
template <class Destination, class Source>
METALLOID_INLINE void begin_copy(Destination to, Source from, bool is_inside) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                   uint(reinterpret_cast<ulong>(to))),
               "l"(from), "r"(is_inside ? 16 : 0)
               : "memory");
}

// What was begun since the last time belongs together.
METALLOID_INLINE void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Wait for a thread's own copies but for the last `open` that were closed.
template <uint open>
METALLOID_INLINE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(open) : "memory");
}

}  // namespace metalloid
#endif
