// The CPU's form of a kernel that is to become vector code: the code of one thread, from which the
// compiler makes that of a simdgroup, and the loops over the simdgroups of a threadgroup.
#pragma once

#include "entry.h"

#pragma push_macro("thread")
#pragma push_macro("threadgroup")
#undef thread
#undef threadgroup

// Parameters of the functions below: what all threads have in common; then the thread's position in
// the threadgroup and in the grid, and its index in the threadgroup. A function for a simdgroup is
// called with those of its first thread.
#define METALLOID_THREAD_PARAMETERS                                                             \
  const metalloid::thread_ids *ids, void *const *words, char *threadgroup_memory, uint x, uint y, \
      uint z, uint grid_x, uint grid_y, uint grid_z, uint index

extern "C" {
void mtl_thread(METALLOID_THREAD_PARAMETERS);
void mtl_threads(METALLOID_THREAD_PARAMETERS);  // of independent threads, adjacent in x
void mtl_partial_threads(METALLOID_THREAD_PARAMETERS, uint threads);
void mtl_rows_of_threads(METALLOID_THREAD_PARAMETERS);  // and those below each, mtl_rows of them
// Runs simdgroups of a threadgroup of so many threads from a barrier to the next, or on from there
// as long as all are together (vectorize/workgroup/simdgroup_loops.py). The origin is the position of the threadgroup's
// first thread in the grid, x, y, z that of the first simdgroup's in the threadgroup.
unsigned long mtl_simdgroup_loop(uint region, bool goes_on, const metalloid::thread_ids* ids, void* const* words,
                        char* threadgroup_memory, uint origin_x, uint origin_y, uint origin_z,
                        uint size_x, uint size_y, uint threads, uint first, uint count,
                        uint x, uint y, uint z, char* states, char* common);
extern const uint mtl_width;  // lanes of a simdgroup
extern const char mtl_axis;   // along which lanes lie: 0, 1, 2 for x, y, z
extern const uint mtl_rows;   // 1 if there are no rows of threads
extern const bool mtl_streams;  // whether stores go past the caches
extern const uint mtl_size_x, mtl_size_y, mtl_size_z;  // of every threadgroup, if that is known
extern const unsigned long mtl_state_bytes, mtl_common_bytes;
// Of the updates that are collected until the call ends (transforms/defer_atomics.py): together, and by each
// simdgroup.
extern const unsigned long mtl_shared_bytes, mtl_own_bytes;
void mtl_flush(char* collectors, uint simdgroups);
void __msl_barrier_missed(uint arrived, uint expected, uint thread);
void __msl_barrier_mismatch(uint thread);
}

namespace metalloid {

// Of a threadgroup whose simdgroups lie along mtl_axis: that axis first, as x is elsewhere. It has
// one thread along the axes that come before it. So do the functions above have their positions.
METALLOID_INLINE metal::uint3 lane_axis_first(metal::uint3 v) {
  return mtl_axis == 1 ? v.yzx : mtl_axis == 2 ? v.zxy : v;
}

template <class Entry>
METALLOID_INLINE void run_thread(METALLOID_THREAD_PARAMETERS) {
  // As a short it is not negative either: then its division is a shift.
  __builtin_assume(index < 32768);
  thread_ids own = *ids;
  own.position_in_threadgroup = {x, y, z};
  own.position_in_grid = {grid_x, grid_y, grid_z};
  own.index = index;
  Entry::call(own, words, threadgroup_memory);
}

// Where a call is along an axis of the grid.
struct axis_range {
  uint position, size;
  const uint last, full_size, last_size;

  METALLOID_INLINE axis_range(const mtl_launch* launch, const mtl_range* range, int axis)
      : position(range->threadgroup[axis]), size(range->size[axis]),
        last(launch->threadgroups_per_grid[axis] - 1),
        full_size(launch->threads_per_threadgroup[axis]),
        last_size(launch->threads_per_grid[axis] - last * full_size) {}

  // Advances to the next threadgroup; false after the last one, which the first one follows.
  METALLOID_INLINE bool next(mtl_range* range, int axis) {
    const bool was_last = position == last;
    position = was_last ? 0 : position + 1;
    size = position == last ? last_size : full_size;
    // Read if a thread fails, hence volatile.
    *(volatile uint*)&range->threadgroup[axis] = position;
    *(volatile uint*)&range->size[axis] = size;
    return !was_last;
  }
};

// Runs the threadgroups of a call. Where they are stays in registers: a processor that loads as one
// what was stored in pieces waits until all stores before have left it for the cache.
template <class Run>
METALLOID_INLINE void run_threadgroups(const mtl_launch* launch, mtl_range* range, Run run) {
  axis_range x(launch, range, 0), y(launch, range, 1), z(launch, range, 2);
  thread_ids ids = ids_of(launch, range);
  uint following = range->following;
  range->following = 0;
  for (;; --following) {
    ids.group = {x.position, y.position, z.position};
    ids.group_size = {x.size, y.size, z.size};
    run(ids);
    if (following == 0) return;
    if (!x.next(range, 0) && !y.next(range, 1)) z.next(range, 2);
  }
}

// Independent threads of a threadgroup, row by row or several rows at a time. The rest of a row is
// run as a masked simdgroup, or thread by thread, which spares the compiler a second form of the kernel.
template <bool has_tail>
METALLOID_INLINE void run_rows(const thread_ids& ids, const mtl_launch* launch,
                               void* const* words, char* memory) {
  // Two copies: the one that only inlined code sees becomes registers.
  const thread_ids ids_in_memory = ids;
  const metal::uint3 size = lane_axis_first(ids.group_size);
  const metal::uint3 origin = lane_axis_first(ids.group * ids.dispatched_size);
  const uint full = size.x - size.x % mtl_width;
  for (uint z = 0; z < size.z; ++z) {
    // Down first: what rows share is still in the cache for those below.
    const uint full_rows = mtl_rows > 1 ? size.y - size.y % mtl_rows : 0;
    for (uint x = 0; full_rows > 0 && x < full; x += mtl_width)
      for (uint y = 0; y < full_rows; y += mtl_rows)
        mtl_rows_of_threads(&ids, words, memory, x, y, z, origin.x + x, origin.y + y, origin.z + z,
                            size.x * (y + size.y * z) + x);
    for (uint y = 0; y < size.y; ++y) {
      const uint row = size.x * (y + size.y * z);
      for (uint x = 0; y >= full_rows && x < full; x += mtl_width)
        mtl_threads(&ids, words, memory, x, y, z, origin.x + x, origin.y + y, origin.z + z, row + x);
      if (has_tail && full < size.x)
        mtl_partial_threads(&ids_in_memory, launch->arguments, memory, full, y, z,
                            origin.x + full, origin.y + y, origin.z + z, row + full,
                            size.x - full);
      for (uint x = full; x < size.x && !has_tail; ++x)
        mtl_thread(&ids_in_memory, launch->arguments, memory, x, y, z, origin.x + x, origin.y + y,
                   origin.z + z, row + x);
    }
  }
}

// Arguments of a launch, and where a call collects updates.
template <int parameters>
struct words_of_call {
  void* words[parameters + 1];

  METALLOID_INLINE words_of_call(const mtl_launch* launch, char* collectors, unsigned long size) {
    for (int i = 0; i < parameters; ++i) words[i] = launch->arguments[i];
    words[parameters] = __builtin_memset(collectors, 0, size);
  }
};

template <int parameters, bool has_tail>
METALLOID_INLINE void run_rows(const mtl_launch* launch, mtl_range* range) {
  char* const collectors = (char*)__builtin_alloca_with_align(mtl_shared_bytes, 512);
  const words_of_call<parameters> own(launch, collectors, mtl_shared_bytes);
  char* const memory = range->threadgroup_memory;
  run_threadgroups(launch, range, [&](const thread_ids& ids) {
    run_rows<has_tail>(ids, launch, own.words, memory);
  });
  mtl_flush(collectors, 0);
  // What went past the caches is ordered by full fences alone.
  if (mtl_streams) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// How far a simdgroup has come: which lanes, and to which barrier, counted from 1 (0: the end).
struct simdgroup_state {
  uint arrived;
  uint region;
};

METALLOID_INLINE const simdgroup_state& state_of(const char* states, uint simdgroup) {
  return *(const simdgroup_state*)(states + simdgroup * mtl_state_bytes);
}

// Whether to continue when some simdgroups are at different barriers or have diverged. Fails,
// unless the launch has relaxed barriers.
METALLOID_INLINE bool continue_divergent(const char* states, uint threads, bool relaxed) {
  uint first = 0, arrived = 0, missing = threads, elsewhere = threads;
  for (uint i = 0; i * mtl_width < threads; ++i) {
    const simdgroup_state& state = state_of(states, i);
    if (first == 0) first = state.region;
    const uint there = state.region == 0 ? 0 : state.arrived;
    const uint left = threads - i * mtl_width, members = left < mtl_width ? left : mtl_width;
    const uint all = ~0u >> (32 - members);
    if ((there & all) != all && missing == threads)
      missing = i * mtl_width + uint(__builtin_ctz(~there));
    if (state.region == first) arrived += uint(__builtin_popcount(there & all));
    else if (state.region != 0 && elsewhere == threads) elsewhere = i * mtl_width;
  }
  if (first == 0) return false;
  if (relaxed) return true;
  if (missing < threads) __msl_barrier_missed(arrived, threads, missing);
  __msl_barrier_mismatch(elsewhere);
  return false;
}

// Threads of a threadgroup that wait for each other: all simdgroups up to a barrier, then all up to
// the next.
METALLOID_INLINE void run_simdgroups(thread_ids ids, void* const* words, char* memory,
                                     char* states, char* common, bool relaxed) {
  if (mtl_size_x) ids.group_size = ids.dispatched_size = {mtl_size_x, mtl_size_y, mtl_size_z};
  const metal::uint3 size = lane_axis_first(ids.group_size);
  const metal::uint3 origin = lane_axis_first(ids.group * ids.dispatched_size);
  const uint threads = volume(size), simdgroups = divide_up(threads, mtl_width);
  const auto run_region = [&](uint region, bool goes_on, uint first, uint count) {
    const uint index = first * mtl_width, row = index / size.x;
    return mtl_simdgroup_loop(region, goes_on, &ids, words, memory, origin.x, origin.y, origin.z,
                     size.x, size.y, threads, first, count, index % size.x, row % size.y,
                     row / size.y, states, common);
  };
  if (run_region(0, true, 0, simdgroups) & 1) return;
  while (continue_divergent(states, threads, relaxed)) {
    for (uint i = 0; i < simdgroups; ++i) {
      const uint region = state_of(states, i).region;
      if (region != 0) run_region(region, false, i, 1);
    }
  }
}

template <int parameters>
METALLOID_INLINE void run_simdgroups(const mtl_launch* launch, mtl_range* range) {
  const metal::uint3 known = {mtl_size_x, mtl_size_y, mtl_size_z};
  const metal::uint3 largest = mtl_size_x ? known : triple(launch->threads_per_threadgroup);
  const uint max_simdgroups = divide_up(volume(largest), mtl_width);
  char* const states = (char*)__builtin_alloca_with_align(max_simdgroups * mtl_state_bytes, 512);
  char* const common = (char*)__builtin_alloca_with_align(mtl_common_bytes, 512);
  const unsigned long collected = mtl_shared_bytes + max_simdgroups * mtl_own_bytes;
  char* const collectors = (char*)__builtin_alloca_with_align(collected, 512);
  const words_of_call<parameters> own(launch, collectors, collected);
  char* const memory = range->threadgroup_memory;
  run_threadgroups(launch, range, [&](const thread_ids& ids) {
    run_simdgroups(ids, own.words, memory, states, common, launch->relaxed_barriers);
  });
  mtl_flush(collectors, max_simdgroups);
}

}  // namespace metalloid

#pragma pop_macro("threadgroup")
#pragma pop_macro("thread")
