// The shadow memory of the sanitizer's vector form, which code of checked kernels calls for its
// accesses. It finds no defects: it says whether there may be one, in mtl_shadow.alarm. Then the
// exact engine (sanitizer.c) looks. It may err on that side only.
//
// Threadgroups run one after another on one system thread. So the accesses of a unit of memory are a
// sequence, and a word of 64 bits keeps what a later access can race with: the time of the last one, its
// thread, and a summary of three levels: of the threadgroups of the launch, of the simdgroups of a
// threadgroup since its last barrier, and of the threads of a simdgroup since its last simdgroup
// barrier. A summary says whether all accesses were plain reads, whether all were atomic, and whether
// more than one threadgroup, simdgroup or thread had part. If more than one had and the accesses are
// neither all reads nor all atomic, two of them race. What an order ends begins a new summary.
//
//   time (45 bits) | thread (10) | shared (3) | atomic (3) | read (3)
#pragma once

#pragma push_macro("thread")
#pragma push_macro("threadgroup")
#undef thread
#undef threadgroup

extern "C" {
extern mtl_shadow_state mtl_shadow;
extern const uint mtl_width;
char* mtl_shadow_addresses[32];  // of the lanes of an access
}

namespace metalloid {
namespace shadow {

typedef unsigned long long word;
typedef word words8 __attribute__((ext_vector_type(8)));

constexpr word READS = 0007, ATOMICS = 0070, SHARED = 0700;
constexpr word ALL = 0777, BETWEEN_SIMDGROUPS = 0666, BETWEEN_THREADGROUPS = 0444;
constexpr word THREAD_SHARED = 0100, SIMDGROUP_SHARED = 0200, GROUP_SHARED = 0400;
constexpr int THREAD_AT = 9;
constexpr word THREAD = word(1023) << THREAD_AT, SIMDGROUP = word(31) << (THREAD_AT + 5);

// The modes of accesses (compiler/sanitizer/vector_form.py).
enum { READ = 1, ATOMIC = 2, USES_VALUE = 4 };

// The times that a word is compared with.
struct access {
  word floor, group, epoch, simdgroup, now;
  word kinds;          // READS, ATOMICS or none
  word uninitialised;  // 1 if memory without a value must not be read
  word first_thread;   // of lane 0

  METALLOID_INLINE access(uint space, uint contents, uint mode) {
    const mtl_shadow_state& state = mtl_shadow;
    first_thread = word(state.index) << THREAD_AT;
    floor = state.floor[space];
    group = state.group_start;
    epoch = state.epoch_start[space];
    simdgroup = state.simd_start[space][state.index / 32 % MTL_SHADOW_SIMDGROUPS];
    if (simdgroup < epoch) simdgroup = epoch;
    now = state.time;
    kinds = mode & READ ? READS : mode & ATOMIC ? ATOMICS : 0;
    // An atomic update of a fresh buffer counts from the zeros that it has.
    const bool has_no_values = space == 1 || contents == MTL_NO_CONTENTS ||
                               (contents == MTL_ZEROS && !(mode & ATOMIC));
    uninitialised = has_no_values && mode & USES_VALUE;
  }
};

// The words after an access by threads whose numbers are in the bits of THREAD. In `bad`, bits for
// those that may have a defect. `shared` is THREAD_SHARED if several lanes access the unit.
template <class Words>
METALLOID_INLINE Words after(Words before, Words threads, const access& now, word shared, Words& bad) {
  const auto is_first = before < Words(now.floor);
  const auto is_of_other_group = before < Words(now.group), is_earlier = before < Words(now.epoch);
  const auto is_ordered = before < Words(now.simdgroup);
  const Words difference = before ^ threads;
  const auto is_of_other_simdgroup = (difference & SIMDGROUP) != Words(0);
  const auto is_of_other_thread = (difference & THREAD) != Words(0);
  const Words none = Words(0);
  const Words retained =
      is_first ? none
      : is_earlier ? Words(BETWEEN_THREADGROUPS)
      : is_of_other_simdgroup ? Words(BETWEEN_SIMDGROUPS)
      : is_ordered ? Words(BETWEEN_SIMDGROUPS) : Words(ALL);
  const Words others =
      is_first ? none
      : is_of_other_group ? Words(GROUP_SHARED)
      : is_earlier ? none
      : is_of_other_simdgroup ? Words(SIMDGROUP_SHARED)
      : is_ordered ? none
      : is_of_other_thread ? Words(THREAD_SHARED) : none;
  const Words known = (before & retained) | (Words(READS | ATOMICS) & ~retained);
  const Words flags = (known & (now.kinds | SHARED)) | others | shared;
  bad |= (flags >> 6) & ~(flags | flags >> 3) & 7;
  bad |= is_first ? Words(now.uninitialised) : none;
  return now.now | threads | flags;
}

METALLOID_INLINE void alarm() { mtl_shadow.alarm = 1; }

// The range with some bytes; null if there is none.
METALLOID_INLINE const mtl_shadow_range* range_of(word first, word bytes) {
  mtl_shadow_state& state = mtl_shadow;
  const auto is_inside = [&](const mtl_shadow_range& range) {
    return bytes <= range.bytes && first - range.first <= range.bytes - bytes;
  };
  const mtl_shadow_range& last = state.ranges[state.last_range];
  if (is_inside(last)) return &last;
  for (uint i = 0; i < state.range_count; ++i) {
    if (!is_inside(state.ranges[i])) continue;
    state.last_range = i;
    return &state.ranges[i];
  }
  return nullptr;
}

// An access by one lane, or by several lanes of the same address.
METALLOID_INLINE void access_unit(const mtl_shadow_range& range, const access& now, word address,
                                  word size, uint lane, word shared, word& bad) {
  const word offset = address - range.first, unit = word(1) << range.unit_bits;
  const word threads = now.first_thread + (word(lane) << THREAD_AT);
  // A value for a part of a unit is none for the unit.
  if ((range.space == 1 || range.contents) && (offset | size) & (unit - 1)) bad = 1;
  const word last = (offset + size - 1) >> range.unit_bits;
  for (word i = offset >> range.unit_bits; i <= last; ++i)
    range.words[i] = after<word>(range.words[i], threads, now, shared, bad);
}

// Whether plain reads change no summary of these words: since the last barrier several simdgroups have
// read them, or several threads of this simdgroup since its last simdgroup barrier, and none wrote.
METALLOID_INLINE bool is_settled(words8 before, const access& now) {
  constexpr word between_simdgroups = SIMDGROUP_SHARED | 0002, between_threads = THREAD_SHARED | 0001;
  const auto by_simdgroups = (before >= words8(now.epoch)) &
                             ((before & between_simdgroups) == words8(between_simdgroups));
  const auto by_threads = (before >= words8(now.simdgroup)) &
                          (((before ^ now.first_thread) & SIMDGROUP) == words8(0)) &
                          ((before & between_threads) == words8(between_threads));
  return __builtin_reduce_and(by_simdgroups | by_threads) != 0;
}

// Accesses of neighbouring lanes to neighbouring memory, of 1 << lane_bits units each.
template <bool has_mask>
METALLOID_INLINE void access_row(word* words, const access& now, uint lane_bits, uint active, word& bad) {
  const words8 steps = {0, 1, 2, 3, 4, 5, 6, 7};
  const uint count = (32 - uint(__builtin_clz(active))) << lane_bits;
  words8 all_bad = words8(0);
  for (uint i = 0; i < count; i += 8) {
    typedef words8 unaligned __attribute__((aligned(8)));
    unaligned* const at = (unaligned*)(words + i);
    const words8 before = *at;
    if (now.kinds == READS && is_settled(before, now)) continue;
    const words8 lanes = (steps + words8(word(i))) >> words8(word(lane_bits));
    const words8 threads = (lanes << words8(word(THREAD_AT))) + words8(now.first_thread);
    words8 here = words8(0);
    const words8 changed = after<words8>(before, threads, now, 0, here);
    if (has_mask) {
      const auto is_active = ((words8(word(active)) >> lanes) & words8(1)) != words8(0);
      *at = is_active ? changed : before;
      all_bad |= is_active ? here : words8(0);
    } else {
      *at = changed;
      all_bad |= here;
    }
  }
  bad |= __builtin_reduce_or(all_bad);
}

METALLOID_INLINE void step_barrier(word* starts, uint stride, uint flags, word time) {
  if (flags & 5) starts[0] = time;  // mem_device, mem_texture
  if (flags & 2) starts[stride] = time;
}

}  // namespace shadow
}  // namespace metalloid

#define METALLOID_SHADOW [[clang::sycl_external]]

extern "C" {

// Active lanes access memory, with the same distance between neighbours.
METALLOID_SHADOW __attribute__((noinline)) void mtl_shadow_row(char* base, unsigned long size, long stride,
                                                   uint mode, uint active) {
  using namespace metalloid::shadow;
  if (!active) return;
  const uint first = uint(__builtin_ctz(active)), last = 31 - uint(__builtin_clz(active));
  const long start = long(base), low = start + stride * (stride < 0 ? last : first),
             high = start + stride * (stride < 0 ? first : last);
  const mtl_shadow_range* range = range_of(word(low), word(high - low) + size);
  if (!range) return alarm();
  const access now(range->space, range->contents, mode);
  const uint unit = 1u << range->unit_bits, per_lane = uint(size >> range->unit_bits);
  word bad = 0;
  const long offset = start - long(range->first);
  if (long(size) == stride && per_lane && !(per_lane & (per_lane - 1)) &&
      !((size | word(offset)) & (unit - 1))) {
    word* const words = range->words + (offset >> range->unit_bits);
    const uint lane_bits = uint(__builtin_ctz(per_lane));
    if (active == ~0u >> (32 - mtl_width) && !(mtl_width << lane_bits & 7))
      access_row<false>(words, now, lane_bits, active, bad);
    else
      access_row<true>(words, now, lane_bits, active, bad);
  } else {
    for (uint left = active; left; left &= left - 1) {
      const uint lane = uint(__builtin_ctz(left));
      access_unit(*range, now, word(start + stride * long(lane)), size, lane, 0, bad);
    }
  }
  if (bad) alarm();
}

// All active lanes access the same memory.
METALLOID_SHADOW __attribute__((noinline)) void mtl_shadow_uniform(char* address, unsigned long size, uint mode,
                                                       uint active) {
  using namespace metalloid::shadow;
  if (!active) return;
  const mtl_shadow_range* range = range_of(word(address), size);
  if (!range) return alarm();
  const access now(range->space, range->contents, mode);
  word bad = 0;
  access_unit(*range, now, word(address), size, uint(__builtin_ctz(active)),
              active & (active - 1) ? THREAD_SHARED : 0, bad);
  if (bad) alarm();
}

// Active lanes access memory at mtl_shadow_addresses.
METALLOID_SHADOW __attribute__((noinline)) void mtl_shadow_gather(unsigned long size, uint mode, uint active) {
  using namespace metalloid::shadow;
  word bad = 0;
  const access kinds[] = {{0, MTL_WRITTEN, mode}, {1, MTL_WRITTEN, mode}, {0, MTL_ZEROS, mode},
                          {0, MTL_NO_CONTENTS, mode}};
  for (uint left = active; left; left &= left - 1) {
    const uint lane = uint(__builtin_ctz(left));
    const word address = word(mtl_shadow_addresses[lane]);
    const mtl_shadow_range* range = range_of(address, size);
    if (!range) return alarm();
    access_unit(*range, kinds[range->contents ? 1 + range->contents : range->space], address, size, lane, 0, bad);
  }
  if (bad) alarm();
}

// One thread accesses memory. This and what has no lanes below is code of one thread.
METALLOID_SHADOW void mtl_shadow_access(char* address, unsigned long size, uint mode) {
  mtl_shadow_uniform(address, size, mode, 1);
}

// A simdgroup begins.
METALLOID_SHADOW void mtl_shadow_enter_lanes(uint index, uint active) {
  mtl_shadow_state& state = mtl_shadow;
  state.index = index;
  if (index == 0) {
    if (state.arrived != state.threads) state.alarm = 1;
    state.threads = state.arrived = 0;
    state.time += MTL_SHADOW_TICK;
    state.group_start = state.floor[1] = state.time;
    state.epoch_start[0] = state.epoch_start[1] = state.time;
  }
  const uint count = uint(__builtin_popcount(active));
  state.threads += count;
  state.arrived += count;
  state.members[index / 32 % MTL_SHADOW_SIMDGROUPS] = active;
}

METALLOID_SHADOW void mtl_shadow_enter(uint index) { mtl_shadow_enter_lanes(index, 1); }

// It has passed a barrier. The simdgroup with thread 0 is the first one that does.
METALLOID_SHADOW void mtl_shadow_barrier_lanes(uint flags, uint index, uint active) {
  mtl_shadow_state& state = mtl_shadow;
  state.index = index;
  if (index == 0) {
    if (state.arrived != state.threads) state.alarm = 1;
    state.arrived = 0;
    state.time += MTL_SHADOW_TICK;
    metalloid::shadow::step_barrier(state.epoch_start, 1, flags, state.time);
  }
  state.arrived += uint(__builtin_popcount(active));
}

METALLOID_SHADOW void mtl_shadow_simdgroup_barrier_lanes(uint flags, uint active) {
  mtl_shadow_state& state = mtl_shadow;
  const uint simdgroup = state.index / 32 % MTL_SHADOW_SIMDGROUPS;
  if (active != state.members[simdgroup]) state.alarm = 1;
  state.time += MTL_SHADOW_TICK;
  metalloid::shadow::step_barrier(&state.simd_start[0][simdgroup], MTL_SHADOW_SIMDGROUPS, flags,
                                  state.time);
}

// A function that reads other lanes: all must take part.
METALLOID_SHADOW void mtl_shadow_shuffle_lanes(uint active) {
  if (active && ~active) mtl_shadow.alarm = 1;
}

METALLOID_SHADOW void mtl_shadow_alarm_lanes(uint lanes) { mtl_shadow.alarm |= lanes; }

METALLOID_SHADOW void mtl_shadow_alarm_if(bool holds) { mtl_shadow.alarm |= holds; }

// In code of one thread, of kernels that call none of these.
METALLOID_SHADOW void mtl_shadow_shuffle() { mtl_shadow.alarm = 1; }
METALLOID_SHADOW void mtl_shadow_barrier(uint) { mtl_shadow.alarm = 1; }
METALLOID_SHADOW void mtl_shadow_simdgroup_barrier(uint) { mtl_shadow.alarm = 1; }

}  // extern "C"

#undef METALLOID_SHADOW

#pragma pop_macro("threadgroup")
#pragma pop_macro("thread")
