// A threadgroup barrier that only some lanes of a simdgroup reach.
//
// Undefined in Metal, but Apple's GPUs let a simdgroup pass when any of its lanes arrives, and
// kernels rely on it (MLX's gemv does). CUDA's barrier waits for every thread that has not returned,
// and so for those that wait at the post-dominator for these lanes: for ever. In divergent code
// member_masks.py inserts this barrier, with the active lanes; the first arrives for its simdgroup.
#pragma once

#include "kernel_entry.h"

#define METALLOID_BARRIER_FUNCTION \
  extern "C" [[clang::sycl_external]] __attribute__((noinline, convergent, nothrow)) void

namespace metalloid {

// Simdgroups that have arrived, the number of simdgroups, and the number of completed barriers: one
// word, so that updates are atomic.
struct barrier_state {
  ushort arrived, simdgroups;
  uint completed;
};

// The state, and the number of threads of each simdgroup that have ended.
struct barrier_memory {
  ulong word;
  uint ended[32];
};

METALLOID_INLINE __attribute__((opencl_local)) barrier_memory& shared_memory() {
  static __attribute__((opencl_local)) barrier_memory memory;
  return memory;
}

// Record that a simdgroup has arrived, or has ended. Returns the number of completed barriers before.
METALLOID_INLINE uint update_state(ushort arrived, ushort left) {
  auto& word = shared_memory().word;
  ulong before = __atomic_load_n(&word, __ATOMIC_RELAXED), after;
  do {
    auto state = __builtin_bit_cast(barrier_state, before);
    state.arrived += arrived;
    state.simdgroups -= left;
    if (state.arrived >= state.simdgroups) state = {0, state.simdgroups, state.completed + 1};
    after = __builtin_bit_cast(ulong, state);
  } while (!__atomic_compare_exchange_n(&word, &before, after, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return __builtin_bit_cast(barrier_state, before).completed;
}

METALLOID_INLINE bool is_first_of(uint lanes) {
  return uint(__nvvm_read_ptx_sreg_laneid()) == uint(__builtin_ctz(lanes));
}

}  // namespace metalloid

// All threads of kernels with such a barrier call this first.
METALLOID_BARRIER_FUNCTION mtl_open_divergent_barrier(uint simdgroups) {
  using namespace metalloid;
  shared_memory().word = __builtin_bit_cast(ulong, barrier_state{0, ushort(simdgroups), 0});
  shared_memory().ended[__msl_simdgroup_index()] = 0;
  __nvvm_barrier_sync(0);
}

METALLOID_BARRIER_FUNCTION mtl_divergent_barrier(uint active) {
  using namespace metalloid;
  __nvvm_bar_warp_sync(active);
  active = __nvvm_vote_ballot_sync(active, true);  // some may have ended, by a failed check
  if (is_first_of(active)) {
    __nvvm_membar_cta();
    const uint completed = update_state(1, 0);
    while (uint(__atomic_load_n(&shared_memory().word, __ATOMIC_RELAXED) >> 32) == completed) {
    }
    __nvvm_membar_cta();
  }
  __nvvm_bar_warp_sync(active);
}

// Threads call this before they end. The others no longer wait for a simdgroup that has ended.
METALLOID_BARRIER_FUNCTION mtl_leave_divergent_barrier() {
  using namespace metalloid;
  const uint active = __nvvm_activemask(), simdgroup = __msl_simdgroup_index();
  const uint threads = uint(__nvvm_read_ptx_sreg_ntid_x()) *
                           uint(__nvvm_read_ptx_sreg_ntid_y()) *
                           uint(__nvvm_read_ptx_sreg_ntid_z()) -
                       32 * simdgroup;
  if (is_first_of(active)) {
    const uint count = __builtin_popcount(active);
    const uint before =
        __atomic_fetch_add(&shared_memory().ended[simdgroup], count, __ATOMIC_RELAXED);
    if (before + count == (threads < 32 ? threads : 32)) update_state(0, 1);
  }
}
