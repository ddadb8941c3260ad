// A kernel's form on NVIDIA GPUs: one CUDA thread is one thread of Metal, a block a threadgroup, a
// warp a simdgroup.
#pragma once

#include "divergent_barrier.h"
#include "fault_record.h"

// Memory of the parameters in the threadgroup space; the launch says how much.
extern __attribute__((opencl_local, aligned(16))) char mtl_threadgroup_memory[];

// Index of the first thread in the simdgroup of the thread `index`. It is a function, so that
// warp_divergence.py can treat the result as uniform across a warp.
extern "C" __attribute__((const, nothrow)) uint mtl_simdgroup_start(uint index);

namespace metalloid {

// Arguments of a launch (packed by launcher.py). A grid with more threadgroups in y or z than the
// driver takes is split into several launches, each with its first threadgroup. It is uniform if all
// threadgroups are full, have the shape of the blocks, and thread i is lane i % 32.
template <int parameters>
struct launch_data {
  void* words[parameters == 0 ? 1 : parameters];
  unsigned grid[3], group[3], first[3], is_uniform;
};

METALLOID_INLINE uint least(uint a, uint b) { return a < b ? a : b; }
METALLOID_INLINE metal::uint3 triple(const unsigned (&v)[3]) { return {v[0], v[1], v[2]}; }

// The ids of a thread, as if its threadgroup were full.
template <int words>
METALLOID_INLINE thread_ids ids_of(const launch_data<words>& launch) {
  const metal::uint3 position = {uint(__nvvm_read_ptx_sreg_tid_x()),
                                 uint(__nvvm_read_ptx_sreg_tid_y()),
                                 uint(__nvvm_read_ptx_sreg_tid_z())};
  const metal::uint3 block = {uint(__nvvm_read_ptx_sreg_ctaid_x()),
                              uint(__nvvm_read_ptx_sreg_ctaid_y()),
                              uint(__nvvm_read_ptx_sreg_ctaid_z())};
  thread_ids ids;
  ids.dispatched_size = triple(launch.group);
  ids.grid = triple(launch.grid);
  ids.group = triple(launch.first) + block;
  ids.groups = {divide_up(ids.grid.x, ids.dispatched_size.x),
                divide_up(ids.grid.y, ids.dispatched_size.y),
                divide_up(ids.grid.z, ids.dispatched_size.z)};
  ids.group_size = ids.dispatched_size;
  ids.index = position.x + ids.dispatched_size.x * (position.y + ids.dispatched_size.y * position.z);
  ids.position_in_threadgroup = position;
  return ids;
}

// The same where threadgroups are not all full, of the thread with an index; false if there is none.
//
// The lanes may have another order (lanes_nvptx.h). At the grid's edge a threadgroup is smaller: its
// threads get consecutive indices, so that the first warps run them all. A block has at most 64
// threads in z; deeper threadgroups are launched as one row.
METALLOID_INLINE bool find_thread(thread_ids& ids, metal::uint3 origin, uint index) {
  const metal::uint3 left = ids.grid - origin;
  ids.group_size = {least(left.x, ids.group_size.x), least(left.y, ids.group_size.y),
                    least(left.z, ids.group_size.z)};
  ids.index = index;
  if (index >= volume(ids.group_size)) return false;
  const uint row = index / ids.group_size.x;
  ids.position_in_threadgroup = {index % ids.group_size.x, row % ids.group_size.y,
                                 row / ids.group_size.y};
  return true;
}

template <class Entry, int words>
METALLOID_INLINE void run_thread(const launch_data<words>& launch) {
  thread_ids ids = ids_of(launch);
  const metal::uint3 origin = ids.group * ids.dispatched_size;
  mtl_open_divergent_barrier(divide_up(volume(ids.group_size), 32));
  if (!launch.is_uniform &&
      !find_thread(ids, origin, mtl_simdgroup_start(ids.index) + mtl_lane()))
    return;
  ids.index = mtl_simdgroup_start(ids.index) + mtl_lane();
  ids.position_in_grid = origin + ids.position_in_threadgroup;
  Entry::call(ids, launch.words, (char*)mtl_threadgroup_memory);
}

// Record an access that was outside. The last word of the launch points to the record.
template <int words>
METALLOID_INLINE void record_fault(uint site, long offset, ulong extent,
                                   const launch_data<words>& launch) {
  record_fault(launch.words[words - 1], site, offset, extent,
               [&](device uint* group, device uint* position) METALLOID_INLINE_LAMBDA {
                 thread_ids ids = ids_of(launch);
                 if (!launch.is_uniform)
                   find_thread(ids, ids.group * ids.dispatched_size, (ids.index & ~31u) + mtl_lane());
                 for (int k = 0; k < 3; ++k) {
                   group[k] = ids.group[k];
                   position[k] = ids.position_in_threadgroup[k];
                 }
               });
}

}  // namespace metalloid
