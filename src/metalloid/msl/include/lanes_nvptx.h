// Which lane of a warp runs which thread of a simdgroup, on NVIDIA GPUs.
//
// Mostly thread n is lane n. In kernels that multiply matrices on tensor cores the threads are dealt
// out such that the elements that a thread of Metal owns (metal_simdgroup_matrix.h) are those that
// its lane has to hand to the instruction; then nothing has to move. What kernels see are numbers of
// threads; lanes appear here and in instructions only.
//
// Bits of a thread's number and of its lane's: 0 and 4 are the same, and 1, 2, 3 of the number are
// 2, 3, 1 of the lane.
#pragma once

#include "metal_types.h"

// The thread's number in its simdgroup; the lane of a number; a bit for each number from a bit for
// each lane; the word of the thread so many numbers below, and above it whether there is one. Which
// of the two orders a kernel has is settled after its code was seen, by a choice among the functions
// below (backends/cuda/compile/member_masks.py).
#define METALLOID_LANE_FUNCTION extern "C" __attribute__((const, nothrow)) uint
METALLOID_LANE_FUNCTION mtl_lane();
METALLOID_LANE_FUNCTION mtl_lane_of(uint number);
METALLOID_LANE_FUNCTION mtl_numbers_of_lanes(uint lanes);
#undef METALLOID_LANE_FUNCTION
extern "C" __attribute__((convergent, nothrow)) ulong mtl_from_below(uint members, uint word,
                                                                     uint distance);

#define METALLOID_LANE_FUNCTION extern "C" [[clang::sycl_external]] uint
METALLOID_LANE_FUNCTION mtl_plain_lane() { return __nvvm_read_ptx_sreg_laneid(); }
METALLOID_LANE_FUNCTION mtl_plain_lane_of(uint number) { return number; }
METALLOID_LANE_FUNCTION mtl_plain_numbers_of_lanes(uint lanes) { return lanes; }

METALLOID_LANE_FUNCTION mtl_matrix_lane() {
  const uint lane = __nvvm_read_ptx_sreg_laneid();
  return (lane & 0x11) | (lane & 0x02) << 2 | (lane & 0x0c) >> 1;
}
METALLOID_LANE_FUNCTION mtl_matrix_lane_of(uint number) {
  return (number & 0x11) | (number & 0x08) >> 2 | (number & 0x06) << 1;
}
// Exchanges bits 1 and 3 of the indices, then 1 and 2.
METALLOID_LANE_FUNCTION mtl_matrix_numbers_of_lanes(uint lanes) {
  uint moving = (lanes >> 6 ^ lanes) & 0x00cc00cc;
  lanes ^= moving | moving << 6;
  moving = (lanes >> 2 ^ lanes) & 0x0c0c0c0c;
  return lanes ^ (moving | moving << 2);
}
#undef METALLOID_LANE_FUNCTION

#define METALLOID_LANE_FUNCTION extern "C" [[clang::sycl_external]] ulong
// clang has no function that returns the instruction's predicate as well as its word.
METALLOID_LANE_FUNCTION mtl_plain_from_below(uint members, uint word, uint distance) {
  uint other, exists;
  asm volatile(
      "{ .reg .pred %%p; shfl.sync.up.b32 %0|%%p, %2, %3, 0, %4; selp.u32 %1, 1, 0, %%p; }"
      : "=r"(other), "=r"(exists)
      : "r"(word), "rn"(distance), "rn"(members));
  return ulong(exists) << 32 | other;
}
METALLOID_LANE_FUNCTION mtl_matrix_from_below(uint members, uint word, uint distance) {
  const uint number = mtl_matrix_lane();
  const uint source = mtl_matrix_lane_of(number - distance);
  const uint other = __nvvm_shfl_sync_idx_i32(members, word, source, 31);
  return ulong(number >= distance) << 32 | other;
}
#undef METALLOID_LANE_FUNCTION
