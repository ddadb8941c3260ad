// A kernel's form on NVIDIA GPUs: one CUDA thread is one thread of Metal, a block a threadgroup, a
// warp a simdgroup.
#pragma once

#include "parted_barrier.h"

// Memory of the parameters in the threadgroup space; the launch says how much.
extern __attribute__((opencl_local, aligned(16))) char mtl_threadgroup_memory[];

// Of the thread of a threadgroup with this number: the first one's of its simdgroup. A function, so
// that member_masks.py sees that the threads of a warp have it in common.
extern "C" __attribute__((const, nothrow)) uint mtl_simdgroup_start(uint index);

namespace metalloid {

// What a launch hands over (program.py packs it). A grid of more threadgroups than the driver takes
// in y and z comes in several launches, each with its first threadgroup. It is even if all its
// threadgroups are whole, have the shape of the blocks, and their threads are lanes in order.
template <int parameters>
struct launch_data {
  void* words[parameters == 0 ? 1 : parameters];
  unsigned grid[3], group[3], first[3], is_even;
};

METALLOID_INLINE uint least(uint a, uint b) { return a < b ? a : b; }
METALLOID_INLINE metal::uint3 triple(const unsigned (&v)[3]) { return {v[0], v[1], v[2]}; }

template <class Entry>
METALLOID_INLINE void run_thread(const launch_data<Entry::parameter_count>& launch) {
  metal::uint3 place = {uint(__nvvm_read_ptx_sreg_tid_x()), uint(__nvvm_read_ptx_sreg_tid_y()),
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
  const metal::uint3 origin = ids.group * ids.dispatched_size;
  ids.group_size = ids.dispatched_size;
  ids.index = place.x + ids.dispatched_size.x * (place.y + ids.dispatched_size.y * place.z);
  mtl_open_parted_barrier(divide_up(volume(ids.group_size), 32));
  if (!launch.is_even) {
    // Threads are not always dealt out in order (lanes_nvptx.h). At the grid's edge a threadgroup is smaller, and its threads are numbered as if it had been
    // asked for so: the first warps run them all. And a block has at most 64 threads in z; deeper
    // threadgroups come as one row.
    const metal::uint3 left = ids.grid - origin;
    ids.group_size = {least(left.x, ids.group_size.x), least(left.y, ids.group_size.y),
                      least(left.z, ids.group_size.z)};
    ids.index = mtl_simdgroup_start(ids.index) + mtl_lane();
    if (ids.index >= volume(ids.group_size)) return;
    const uint row = ids.index / ids.group_size.x;
    place = {ids.index % ids.group_size.x, row % ids.group_size.y, row / ids.group_size.y};
  }
  ids.index = mtl_simdgroup_start(ids.index) + mtl_lane();
  ids.position_in_threadgroup = place;
  ids.position_in_grid = origin + place;
  Entry::call(ids, launch.words, (char*)mtl_threadgroup_memory);
}

}  // namespace metalloid
