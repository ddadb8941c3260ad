// A kernel's form in SPIR-V for OpenCL: a work-item is one thread of Metal, a work-group a
// threadgroup, a subgroup one or more simdgroups.
//
// All threadgroups of a launch have one size: a grid that is not a multiple of it is split into several
// launches (geometry.py).
#pragma once

#include "fault_record.h"
#include "kernel_entry.h"

namespace metalloid {

// Arguments of a launch (packed by launch_data.py): addresses, the grid, the threadgroup as asked for,
// the threadgroup of this launch, the position of the first one, and where to report.
template <int parameters>
struct launch_data {
  void* words[parameters == 0 ? 1 : parameters];
  ulong report_block;
  unsigned grid[3], dispatched[3], group[3], first[3];
};

METALLOID_INLINE metal::uint3 triple(const unsigned (&v)[3]) { return {v[0], v[1], v[2]}; }

// How work-items are threads (geometry.py). Subgroups are work-items with adjacent indices in x.
enum class form {
  row,     // threadgroups of one dimension
  grid,    // of several; their width is a multiple of a subgroup's
  linear,  // of any size: work-groups have one dimension, and threads compute their positions
};
constexpr unsigned max_extent = 1u << 31;  // of a grid, but for the last form
constexpr unsigned max_threads = 1024;  // of a threadgroup

METALLOID_INLINE uint exact(ulong id, uint limit) {
  __builtin_assume(id < limit);
  return uint(id);
}

template <class Entry, form form, int words>
METALLOID_INLINE void run_thread(const launch_data<words>& launch, threadgroup char* memory) {
  thread_ids ids;
  ids.dispatched_size = triple(launch.dispatched);
  ids.group_size = triple(launch.group);
  ids.grid = triple(launch.grid);
  ids.groups = {divide_up(ids.grid.x, ids.dispatched_size.x),
                divide_up(ids.grid.y, ids.dispatched_size.y),
                divide_up(ids.grid.z, ids.dispatched_size.z)};
  ids.group = triple(launch.first) + metal::uint3(__builtin_spirv_workgroup_id(0),
                                                  __builtin_spirv_workgroup_id(1),
                                                  __builtin_spirv_workgroup_id(2));
  if constexpr (form == form::linear) {
    ids.index = __builtin_spirv_local_invocation_id(0);
    const uint row = ids.index / ids.group_size.x;
    ids.position_in_threadgroup = {ids.index % ids.group_size.x, row % ids.group_size.y,
                                   row / ids.group_size.y};
    ids.position_in_grid = ids.group * ids.dispatched_size + ids.position_in_threadgroup;
  } else {
    // The driver's compiler sees from its own ids that adjacent threads access adjacent memory.
    ids.index = exact(__builtin_spirv_local_invocation_id(0), max_threads);
    ids.position_in_threadgroup = {ids.index, 0, 0};
    ids.position_in_grid = ids.group * ids.dispatched_size;
    ids.position_in_grid.x = exact(__builtin_spirv_global_invocation_id(0), max_extent);
    if constexpr (form == form::grid) {
      ids.position_in_threadgroup.y = exact(__builtin_spirv_local_invocation_id(1), max_threads);
      ids.position_in_threadgroup.z = exact(__builtin_spirv_local_invocation_id(2), max_threads);
      ids.position_in_grid.y = exact(__builtin_spirv_global_invocation_id(1), max_extent);
      ids.position_in_grid.z = exact(__builtin_spirv_global_invocation_id(2), max_extent);
      ids.index += ids.group_size.x * (ids.position_in_threadgroup.y +
                                       ids.group_size.y * ids.position_in_threadgroup.z);
    }
  }
  threadgroup report::launch_state& state = report::launch();
  state.block = launch.report_block;
  for (int k = 0; k < 3; ++k) {
    state.group[k] = ids.group[k];
    state.size[k] = ids.group_size[k];
  }
  Entry::call(ids, launch.words, (char*)memory);
}

// Record an access that was outside. The last word of the launch points to the record.
template <int words>
METALLOID_INLINE void record_fault(uint site, long offset, ulong extent,
                                   const launch_data<words>& launch) {
  record_fault(launch.words[words - 1], site, offset, extent,
               [](device uint* group, device uint* position) METALLOID_INLINE_LAMBDA {
                 report::put_position(group, position);
               });
}

}  // namespace metalloid
