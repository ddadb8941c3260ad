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
// And of those that return at barriers: the size of the threadgroup in x and y, how many threads the
// simdgroup has, and its state.
#define METALLOID_STATE_PARAMETERS uint size_x, uint size_y, uint threads, void *state

extern "C" {
void mtl_thread(METALLOID_THREAD_PARAMETERS);
void mtl_threads(METALLOID_THREAD_PARAMETERS);  // of independent threads, neighbours in x
void mtl_part_of_threads(METALLOID_THREAD_PARAMETERS, uint threads);
void mtl_simdgroup(METALLOID_THREAD_PARAMETERS, METALLOID_STATE_PARAMETERS);
void mtl_part_of_simdgroup(METALLOID_THREAD_PARAMETERS, METALLOID_STATE_PARAMETERS);
extern const unsigned long mtl_state_bytes;
void __msl_barrier_missed(uint arrived, uint expected, uint thread);
void __msl_barriers_differ(uint thread);
}

namespace metalloid {

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

// Independent threads, row by row. The rest of a row as part of a simdgroup, or one by one, which
// spares the compiler a second form of the kernel.
template <class Entry, uint width, bool ragged>
METALLOID_INLINE void run_rows(const mtl_launch* launch, const mtl_range* range) {
  // Two copies: the one that only inlined code sees becomes registers.
  const thread_ids ids = ids_of(launch, range), ids_in_memory = ids;
  void* words[Entry::parameter_count + 1];
  for (int i = 0; i < Entry::parameter_count; ++i) words[i] = launch->arguments[i];
  char* const memory = range->threadgroup_memory;
  const metal::uint3 size = ids.group_size, origin = ids.group * ids.dispatched_size;
  const uint whole = size.x - size.x % width;
  for (uint z = 0; z < size.z; ++z) {
    for (uint y = 0; y < size.y; ++y) {
      const uint row = size.x * (y + size.y * z);
      for (uint x = 0; x < whole; x += width)
        mtl_threads(&ids, words, memory, x, y, z, origin.x + x, origin.y + y, origin.z + z, row + x);
      if (ragged && whole < size.x)
        mtl_part_of_threads(&ids_in_memory, launch->arguments, memory, whole, y, z,
                            origin.x + whole, origin.y + y, origin.z + z, row + whole,
                            size.x - whole);
      for (uint x = whole; x < size.x && !ragged; ++x)
        mtl_thread(&ids_in_memory, launch->arguments, memory, x, y, z, origin.x + x, origin.y + y,
                   origin.z + z, row + x);
    }
  }
}

// How far a simdgroup has come: which barrier, counted from 1 (0: the end), and which lanes.
struct simdgroup_state {
  uint region;
  uint arrived;
};

METALLOID_INLINE simdgroup_state& state_of(char* states, uint simdgroup) {
  return *(simdgroup_state*)(states + simdgroup * mtl_state_bytes);
}

// What it means that the simdgroups stand where they do: whether to go on. Fails if not all threads
// stand at the same barrier, unless the launch takes barriers as a GPU does.
METALLOID_INLINE bool meet(char* states, uint simdgroups, uint width, uint threads, bool lenient) {
  uint first = 0, arrived = 0, missing = threads, elsewhere = threads;
  for (uint i = 0; i < simdgroups; ++i) {
    const simdgroup_state& state = state_of(states, i);
    if (first == 0) first = state.region;
    const uint there = state.region == 0 ? 0 : state.arrived;
    const uint members = threads - i * width < width ? threads - i * width : width;
    const uint all = members == 32 ? ~0u : (1u << members) - 1;
    if ((there & all) != all && missing == threads)
      missing = i * width + uint(__builtin_ctz(~there));
    if (state.region == first) arrived += uint(__builtin_popcount(there & all));
    else if (state.region != 0 && elsewhere == threads) elsewhere = i * width;
  }
  if (first == 0) return false;
  if (lenient || arrived == threads) return true;
  if (missing < threads) __msl_barrier_missed(arrived, threads, missing);
  __msl_barriers_differ(elsewhere);
  return false;
}

// Threads that wait for each other: all simdgroups up to a barrier, then all up to the next.
template <class Entry, uint width, bool whole>
METALLOID_INLINE void run_simdgroups(const mtl_launch* launch, const mtl_range* range) {
  const thread_ids ids = ids_of(launch, range);
  const metal::uint3 size = ids.group_size, origin = ids.group * ids.dispatched_size;
  const uint threads = volume(size), simdgroups = divide_up(threads, width);
  char* const states =
      (char*)__builtin_alloca_with_align(simdgroups * mtl_state_bytes, 512);
  for (uint i = 0; i < simdgroups; ++i) state_of(states, i) = {0, 0};
  bool begun = false;
  do {
    for (uint i = 0; i < simdgroups; ++i) {
      char* const state = states + i * mtl_state_bytes;
      if (begun && state_of(states, i).region == 0) continue;
      const uint index = i * width, row = index / size.x;
      const uint x = index % size.x, y = row % size.y, z = row / size.y;
      const uint members = threads - index < width ? threads - index : width;
      if (whole || members == width)
        mtl_simdgroup(&ids, launch->arguments, range->threadgroup_memory, x, y, z, origin.x + x,
                      origin.y + y, origin.z + z, index, size.x, size.y, members, state);
      else
        mtl_part_of_simdgroup(&ids, launch->arguments, range->threadgroup_memory, x, y, z,
                              origin.x + x, origin.y + y, origin.z + z, index, size.x, size.y,
                              members, state);
    }
    begun = true;
  } while (meet(states, simdgroups, width, threads, launch->lenient_barriers));
}

}  // namespace metalloid

#pragma pop_macro("threadgroup")
#pragma pop_macro("thread")
