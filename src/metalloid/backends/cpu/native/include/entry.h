// The CPU's form of a kernel: a loop over a box of threads of one threadgroup.
//
// The runtime gives the whole threadgroup as one box to kernels whose threads are independent, and
// a box of one thread to each fibre of those that synchronise.
#pragma once

#include "abi.h"
#include "kernel_entry.h"

#pragma push_macro("thread")
#pragma push_macro("threadgroup")
#undef thread
#undef threadgroup  // here they are names of fields

namespace metalloid {

METALLOID_INLINE uint index_of(metal::uint3 position, metal::uint3 size) {
  return position.x + size.x * (position.y + size.y * position.z);
}

METALLOID_INLINE metal::uint3 triple(const unsigned (&v)[3]) { return {v[0], v[1], v[2]}; }

// What the threads of a threadgroup have in common.
METALLOID_INLINE thread_ids ids_of(const mtl_launch* launch, const mtl_range* range) {
  thread_ids ids;
  ids.group = triple(range->threadgroup);
  ids.group_size = triple(range->size);
  ids.dispatched_size = triple(launch->threads_per_threadgroup);
  ids.grid = triple(launch->threads_per_grid);
  ids.groups = triple(launch->threadgroups_per_grid);
  return ids;
}

// `reports` if the kernel logs or asserts: then it says which thread it is.
template <class Entry, bool reports>
METALLOID_INLINE void run_box(const mtl_launch* launch, mtl_range* range) {
  thread_ids ids = ids_of(launch, range);
  const metal::uint3 origin = ids.group * ids.dispatched_size;
  const metal::uint3 first = origin + triple(range->first), last = origin + triple(range->last);
  char* const threadgroup_memory = range->threadgroup_memory;
  // Copied, for what the kernel stores could otherwise be the launch itself.
  void* words[Entry::parameter_count + 1];
  for (int i = 0; i < Entry::parameter_count; ++i) words[i] = launch->arguments[i];
  // The loops count positions in the grid: an index that only grows up to a 32-bit bound is known
  // not to wrap when it is widened to an address, so clang can turn the inner loop into vectors.
  for (uint z = first.z; z < last.z; ++z) {
    for (uint y = first.y; y < last.y; ++y) {
      for (uint x = first.x; x < last.x; ++x) {
        ids.position_in_grid = {x, y, z};
        ids.position_in_threadgroup = {x - origin.x, y - origin.y, z - origin.z};
        ids.index = index_of(ids.position_in_threadgroup, ids.group_size);
        if constexpr (reports) {
          for (int axis = 0; axis < 3; ++axis)
            range->thread[axis] = ids.position_in_threadgroup[axis];
        }
        Entry::call(ids, words, threadgroup_memory);
      }
    }
  }
}

}  // namespace metalloid

#pragma pop_macro("threadgroup")
#pragma pop_macro("thread")
