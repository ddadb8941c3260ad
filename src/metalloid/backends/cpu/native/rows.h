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
extern const uint mtl_width;  // lanes of a simdgroup
extern const unsigned long mtl_state_bytes;
void __msl_barrier_missed(uint arrived, uint expected, uint thread);
void __msl_barriers_differ(uint thread);
}

namespace metalloid {

template <class Entry>
METALLOID_INLINE void run_thread(METALLOID_THREAD_PARAMETERS) {
  thread_ids own = *ids;
  own.position_in_threadgroup = {x, y, z};
  own.position_in_grid = {grid_x, grid_y, grid_z};
  own.index = index;
  Entry::call(own, words, threadgroup_memory);
}

// Independent threads, row by row. The rest of a row as part of a simdgroup, or one by one, which
// spares the compiler a second form of the kernel.
template <class Entry, bool ragged>
METALLOID_INLINE void run_rows(const mtl_launch* launch, const mtl_range* range) {
  // Two copies: the one that only inlined code sees becomes registers.
  const thread_ids ids = ids_of(launch, range), ids_in_memory = ids;
  void* words[Entry::parameter_count + 1];
  for (int i = 0; i < Entry::parameter_count; ++i) words[i] = launch->arguments[i];
  char* const memory = range->threadgroup_memory;
  const metal::uint3 size = ids.group_size, origin = ids.group * ids.dispatched_size;
  const uint whole = size.x - size.x % mtl_width;
  for (uint z = 0; z < size.z; ++z) {
    for (uint y = 0; y < size.y; ++y) {
      const uint row = size.x * (y + size.y * z);
      for (uint x = 0; x < whole; x += mtl_width)
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

METALLOID_INLINE uint lanes(uint count) { return count == 32 ? ~0u : (1u << count) - 1; }

// The simdgroups are not all complete at the same place: whether to go on. Fails, unless the launch
// takes barriers as a GPU does.
static __attribute__((noinline)) bool go_on_apart(char* states, uint threads, bool lenient) {
  uint first = 0, arrived = 0, missing = threads, elsewhere = threads;
  for (uint i = 0; i * mtl_width < threads; ++i) {
    const simdgroup_state& state = state_of(states, i);
    if (first == 0) first = state.region;
    const uint there = state.region == 0 ? 0 : state.arrived;
    const uint left = threads - i * mtl_width, all = lanes(left < mtl_width ? left : mtl_width);
    if ((there & all) != all && missing == threads)
      missing = i * mtl_width + uint(__builtin_ctz(~there));
    if (state.region == first) arrived += uint(__builtin_popcount(there & all));
    else if (state.region != 0 && elsewhere == threads) elsewhere = i * mtl_width;
  }
  if (first == 0) return false;
  if (lenient || arrived == threads) return true;
  if (missing < threads) __msl_barrier_missed(arrived, threads, missing);
  __msl_barriers_differ(elsewhere);
  return false;
}

// Threads that wait for each other: all simdgroups up to a barrier, then all up to the next.
template <class Entry, bool whole>
METALLOID_INLINE void run_simdgroups(const mtl_launch* launch, const mtl_range* range) {
  const thread_ids ids = ids_of(launch, range);
  const metal::uint3 size = ids.group_size, origin = ids.group * ids.dispatched_size;
  const uint threads = volume(size), simdgroups = divide_up(threads, mtl_width);
  char* const states =
      (char*)__builtin_alloca_with_align(simdgroups * mtl_state_bytes, 512);
  for (uint i = 0; i < simdgroups; ++i) state_of(states, i) = {0, 0};
  bool begun = false, together;
  do {
    together = true;
    uint x = 0, y = 0, z = 0;
    for (uint i = 0; i < simdgroups; ++i) {
      const uint index = i * mtl_width, left = threads - index;
      const uint members = left < mtl_width ? left : mtl_width;
      simdgroup_state& state = state_of(states, i);
      if (!begun || state.region != 0) {
        if (whole || members == mtl_width)
          mtl_simdgroup(&ids, launch->arguments, range->threadgroup_memory, x, y, z, origin.x + x,
                        origin.y + y, origin.z + z, index, size.x, size.y, members, &state);
        else
          mtl_part_of_simdgroup(&ids, launch->arguments, range->threadgroup_memory, x, y, z,
                                origin.x + x, origin.y + y, origin.z + z, index, size.x, size.y,
                                members, &state);
      }
      together &= state.region == state_of(states, 0).region;
      together &= state.region == 0 || state.arrived == lanes(members);
      for (x += mtl_width; x >= size.x; x -= size.x)
        if (++y == size.y) y = 0, ++z;
    }
    begun = true;
  } while (together ? state_of(states, 0).region != 0
                    : go_on_apart(states, threads, launch->lenient_barriers));
}

}  // namespace metalloid

#pragma pop_macro("threadgroup")
#pragma pop_macro("thread")
