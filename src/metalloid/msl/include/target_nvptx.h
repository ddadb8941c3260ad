// The operations of target_externals.h on NVIDIA GPUs, where a simdgroup is a warp.
//
// MSL's functions work on the active threads, so every instruction names the active threads as its
// members: naming all 32 would wait for ever for those that took the other branch. Which those are
// is worked out later where it can be (backends/cuda/compile/member_masks.py).
#pragma once

#include "lanes_nvptx.h"
#include "lane_operations.h"
#include "report_nvptx.h"

#define METALLOID_DEVICE_FUNCTION \
  extern "C" inline __attribute__((always_inline, convergent, nothrow))

// ---- barriers and ids ---------------------------------------------------------------------------
// Both barriers order the memory accesses of their threads in every space.
METALLOID_DEVICE_FUNCTION void __msl_threadgroup_barrier(uint) { __nvvm_barrier_sync(0); }
METALLOID_DEVICE_FUNCTION void __msl_simdgroup_barrier(uint) {
  __nvvm_bar_warp_sync(__nvvm_activemask());
}
METALLOID_DEVICE_FUNCTION uint __msl_simd_lane(void) { return mtl_lane(); }
METALLOID_DEVICE_FUNCTION uint __msl_simdgroup_index(void) {
  const uint row = __nvvm_read_ptx_sreg_tid_y() +
                   __nvvm_read_ptx_sreg_ntid_y() * __nvvm_read_ptx_sreg_tid_z();
  return (__nvvm_read_ptx_sreg_tid_x() + __nvvm_read_ptx_sreg_ntid_x() * row) / 32;
}

namespace metalloid {
namespace simt {

METALLOID_INLINE uint lane() { return mtl_lane(); }
METALLOID_INLINE uint lane_of(uint number) { return mtl_lane_of(number); }
METALLOID_INLINE uint numbers_of(uint lanes) { return mtl_numbers_of_lanes(lanes); }
METALLOID_INLINE uint active_lanes() { return __nvvm_activemask(); }
METALLOID_INLINE uint ballot(uint members, bool vote) {
  return __nvvm_vote_ballot_sync(members, vote);
}
METALLOID_INLINE uint read_word(uint members, uint word, uint lane) {
  return __nvvm_shfl_sync_idx_i32(members, word, lane, 31);
}
METALLOID_INLINE ulong word_from_below(uint members, uint word, uint distance) {
  return mtl_from_below(members, word, distance);
}

// What one instruction does, from compute capability 8.0 on.
#if METALLOID_COMPUTE_CAPABILITY >= 80
#define METALLOID_REDUX(operation, T, instruction) \
  template <> \
  inline constexpr bool has_instruction<operation, T> = true; \
  METALLOID_INLINE T reduce_instruction(operation, uint members, T value) { \
    return T(__nvvm_redux_sync_##instruction(value, members)); \
  }
METALLOID_REDUX(sum, int, add)
METALLOID_REDUX(sum, uint, add)
METALLOID_REDUX(min, int, min)
METALLOID_REDUX(min, uint, umin)
METALLOID_REDUX(max, int, max)
METALLOID_REDUX(max, uint, umax)
METALLOID_REDUX(bitwise_and, uint, and)
METALLOID_REDUX(bitwise_or, uint, or)
METALLOID_REDUX(bitwise_xor, uint, xor)
#undef METALLOID_REDUX
#endif

}  // namespace simt
}  // namespace metalloid

#include "lane_functions.h"

#undef METALLOID_DEVICE_FUNCTION
