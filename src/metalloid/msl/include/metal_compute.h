// Synchronisation of threads (MSL specification, "Synchronization Functions").
#pragma once

#include "target_externals.h"

namespace metal {

enum class mem_flags {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16,
};

METALLOID_INLINE constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return mem_flags(int(a) | int(b));
}
METALLOID_INLINE constexpr mem_flags operator&(mem_flags a, mem_flags b) {
  return mem_flags(int(a) & int(b));
}
METALLOID_INLINE constexpr mem_flags& operator|=(mem_flags& a, mem_flags b) { return a = a | b; }

// Not defined here on purpose: thread_scope_system, which MLX adds by itself.
enum thread_scope {
  thread_scope_thread = 0,
  thread_scope_simdgroup = 1,
  thread_scope_threadgroup = 2,
  thread_scope_device = 3,
};

// The values are those of clang's __ATOMIC_* constants.
enum memory_order {
  memory_order_relaxed = 0,
  memory_order_acquire = 2,
  memory_order_release = 3,
  memory_order_acq_rel = 4,
  memory_order_seq_cst = 5,
};

// A barrier of the wider scope is a barrier of the narrower one, so the scope changes nothing.
METALLOID_INLINE void threadgroup_barrier(mem_flags flags,
                                          thread_scope = thread_scope_threadgroup) {
  __msl_threadgroup_barrier(uint(flags));
}
METALLOID_INLINE void simdgroup_barrier(mem_flags flags, thread_scope = thread_scope_simdgroup) {
  __msl_simdgroup_barrier(uint(flags));
}

}  // namespace metal


