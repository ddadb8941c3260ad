// The simdgroup and quad functions of target_externals.h on devices that run a thread of Metal as a
// lane of a wider unit, by what such a device has: the active lanes, and words of other lanes.
//
// A target (target_nvptx.h, target_spirv.h) defines in metalloid::simt, before it includes this file:
//   lane()                                  the thread's number in its simdgroup
//   lane_of(number), numbers_of(lanes)      the lane that runs a thread; bits of lanes as bits of threads
//   active_lanes(), ballot(members, vote)   bits of lanes
//   read_word(members, word, lane)          the word of another lane
//   word_from_below(members, word, n)       that of the thread n numbers below; above it whether there is one
//   has_instruction<Operation, T>           whether reduce_instruction(Operation, members, value) exists
#pragma once

#include "lane_operations.h"

namespace metalloid {
namespace simt {

METALLOID_INLINE uint first_lane_of_quad() { return lane() & ~3u; }

// Applies `move` to each 32-bit word of a value.
template <class T, class Move>
METALLOID_INLINE T by_words(T value, Move move) {
  if constexpr (sizeof(T) == 8) {
    const ulong bits = __builtin_bit_cast(ulong, value);
    const ulong low = move(uint(bits)), high = move(uint(bits >> 32));
    return __builtin_bit_cast(T, high << 32 | low);
  } else {
    return __builtin_bit_cast(T, move(__builtin_bit_cast(uint, value)));
  }
}

// The value of another thread.
template <class T>
METALLOID_INLINE T read_lane(uint members, T value, uint source) {
  const uint lane = lane_of(source);
  return by_words(value, [=](uint word) METALLOID_INLINE_LAMBDA {
    return read_word(members, word, lane);
  });
}
// Applies `joined` to the value of the thread `distance` below; `otherwise` if there is none.
template <class T, class Join>
METALLOID_INLINE T join_below(uint members, T value, uint distance, T otherwise, Join joined) {
  bool exists = false;
  const T other = by_words(value, [=, &exists](uint word) METALLOID_INLINE_LAMBDA {
    const ulong earlier = word_from_below(members, word, distance);
    exists = earlier >> 32 != 0;
    return uint(earlier);
  });
  return exists ? joined(other) : otherwise;
}

// Over the active ones of the lanes [first, last) that lie below `until`, one after the other.
template <class Operation, class T>
METALLOID_INLINE T reduce_range(uint members, T value, uint first, uint last, uint until) {
  T result = Operation::template neutral<T>;
  const uint active = numbers_of(members);
#pragma nounroll
  for (uint source = first; source < last; ++source) {
    T other = read_lane(members, value, source);
    bool counts = (active >> source & 1) != 0 && source < until;
    result = counts ? Operation::of(result, other) : result;
  }
  return result;
}

struct simd_lanes {
  template <class Operation, class T>
  METALLOID_INLINE static T reduce(T value) {
    uint members = active_lanes();
    if constexpr (has_instruction<Operation, T>) return reduce_instruction(Operation(), members, value);
    if (members != 0xffffffff) return reduce_range<Operation>(members, value, 0, 32, 32);
#pragma unroll
    for (uint distance = 16; distance > 0; distance /= 2) {
      value = Operation::of(value, read_lane(members, value, lane() ^ distance));
    }
    return value;
  }

  template <class Operation, class T>
  METALLOID_INLINE static T prefix_inclusive(T value) {
    uint members = active_lanes();
    if (members != 0xffffffff) return reduce_range<Operation>(members, value, 0, 32, lane() + 1);
#pragma unroll
    for (uint distance = 1; distance < 32; distance *= 2) {
      value = join_below(members, value, distance, value, [=](T other) METALLOID_INLINE_LAMBDA {
        return Operation::of(other, value);
      });
    }
    return value;
  }

  template <class Operation, class T>
  METALLOID_INLINE static T prefix_exclusive(T value) {
    uint members = active_lanes();
    if (members != 0xffffffff) return reduce_range<Operation>(members, value, 0, 32, lane());
    return join_below(
        members, prefix_inclusive<Operation>(value), 1, Operation::template neutral<T>,
        [](T before) METALLOID_INLINE_LAMBDA { return before; });
  }

  static constexpr uint size = 32;
  METALLOID_INLINE static uint first() { return 0; }
};

struct quad_lanes {
  template <class Operation, class T>
  METALLOID_INLINE static T reduce_until(T value, uint until) {
    uint first_lane = first();
    return reduce_range<Operation>(active_lanes(), value, first_lane, first_lane + 4, until);
  }
  template <class Operation, class T>
  METALLOID_INLINE static T reduce(T value) {
    return reduce_until<Operation>(value, 32);
  }
  template <class Operation, class T>
  METALLOID_INLINE static T prefix_inclusive(T value) {
    return reduce_until<Operation>(value, lane() + 1);
  }
  template <class Operation, class T>
  METALLOID_INLINE static T prefix_exclusive(T value) {
    return reduce_until<Operation>(value, lane());
  }

  static constexpr uint size = 4;
  METALLOID_INLINE static uint first() { return first_lane_of_quad(); }
};

// ---- moves within a group, by the position in it ------------------------------------------------
// What an inactive thread has reads as 0.
template <class Group, class T>
METALLOID_INLINE T move_from(T value, uint position) {
  const uint members = active_lanes(), source = Group::first() + position % Group::size;
  const T moved = read_lane(members, value, source);
  return (members >> lane_of(source) & 1) != 0 ? moved : T(0);
}

template <class Group>
METALLOID_INLINE uint position() {
  return lane() % Group::size;
}

template <class Group, class T>
METALLOID_INLINE T broadcast(T value, uint source) {
  return move_from<Group>(value, source);
}
template <class Group, class T>
METALLOID_INLINE T shuffle(T value, uint source) {
  return move_from<Group>(value, source);
}
template <class Group, class T>
METALLOID_INLINE T shuffle_xor(T value, uint mask) {
  return move_from<Group>(value, position<Group>() ^ mask);
}
template <class Group, class T>
METALLOID_INLINE T shuffle_rotate_up(T value, uint delta) {
  return move_from<Group>(value, position<Group>() - delta);
}
template <class Group, class T>
METALLOID_INLINE T shuffle_rotate_down(T value, uint delta) {
  return move_from<Group>(value, position<Group>() + delta);
}
// Lanes without a source keep their own value.
template <class Group, class T>
METALLOID_INLINE T shuffle_up(T value, uint delta) {
  T moved = shuffle_rotate_up<Group>(value, delta);
  return position<Group>() < delta ? value : moved;
}
template <class Group, class T>
METALLOID_INLINE T shuffle_down(T value, uint delta) {
  T moved = shuffle_rotate_down<Group>(value, delta);
  return position<Group>() + delta >= Group::size ? value : moved;
}

// The group falls into parts of `modulo` lanes. Up: the lower `delta` lanes of a part take the
// upper ones of `filling`; down: vice versa.
template <class Group, class T>
METALLOID_INLINE T shuffle_and_fill_up(T value, T filling, uint delta, uint modulo) {
  uint in_part = position<Group>() & (modulo - 1);
  uint source = (position<Group>() - in_part) + ((in_part - delta) & (modulo - 1));
  T moved = move_from<Group>(value, source), filled = move_from<Group>(filling, source);
  return in_part < delta ? filled : moved;
}
template <class Group, class T>
METALLOID_INLINE T shuffle_and_fill_down(T value, T filling, uint delta, uint modulo) {
  uint in_part = position<Group>() & (modulo - 1);
  uint source = (position<Group>() - in_part) + ((in_part + delta) & (modulo - 1));
  T moved = move_from<Group>(value, source), filled = move_from<Group>(filling, source);
  return in_part + delta >= modulo ? filled : moved;
}

}  // namespace simt
}  // namespace metalloid

// ---- definitions --------------------------------------------------------------------------------
#define METALLOID_DEFINE1(suffix, T, group, name, function) \
  METALLOID_DEVICE_FUNCTION T __msl_##group##_##name##_##suffix(T data) { \
    using namespace metalloid::simt; \
    return group##_lanes::function(data); \
  }
#define METALLOID_DEFINE_NUMBERS(group, name, function) \
  METALLOID_DEFINE1(i32, int, group, name, function) \
  METALLOID_DEFINE1(u32, uint, group, name, function) \
  METALLOID_DEFINE1(i64, long, group, name, function) \
  METALLOID_DEFINE1(u64, ulong, group, name, function) \
  METALLOID_DEFINE1(f32, float, group, name, function)
#define METALLOID_DEFINE_WORDS(group, name, function) \
  METALLOID_DEFINE1(b32, uint, group, name, function) \
  METALLOID_DEFINE1(b64, ulong, group, name, function)

#define METALLOID_DEFINE_MOVE1(suffix, T, group, name) \
  METALLOID_DEVICE_FUNCTION T __msl_##group##_##name##_##suffix(T data, ushort lane_or_delta) { \
    using namespace metalloid::simt; \
    return metalloid::simt::name<group##_lanes>(data, lane_or_delta); \
  }
#define METALLOID_DEFINE_MOVE(group, name) \
  METALLOID_DEFINE_MOVE1(b32, uint, group, name) METALLOID_DEFINE_MOVE1(b64, ulong, group, name)

#define METALLOID_DEFINE_FILL1(suffix, T, group, name) \
  METALLOID_DEVICE_FUNCTION T __msl_##group##_##name##_##suffix(T data, T filling, ushort delta, \
                                                                ushort modulo) { \
    using namespace metalloid::simt; \
    return metalloid::simt::name<group##_lanes>(data, filling, delta, modulo); \
  }
#define METALLOID_DEFINE_FILL(group, name) \
  METALLOID_DEFINE_FILL1(b32, uint, group, name) METALLOID_DEFINE_FILL1(b64, ulong, group, name)

#define METALLOID_DEFINE_GROUP(group) \
  METALLOID_DEFINE_NUMBERS(group, sum, reduce<sum>) \
  METALLOID_DEFINE_NUMBERS(group, product, reduce<product>) \
  METALLOID_DEFINE_NUMBERS(group, min, reduce<min>) \
  METALLOID_DEFINE_NUMBERS(group, max, reduce<max>) \
  METALLOID_DEFINE_NUMBERS(group, prefix_inclusive_sum, prefix_inclusive<sum>) \
  METALLOID_DEFINE_NUMBERS(group, prefix_exclusive_sum, prefix_exclusive<sum>) \
  METALLOID_DEFINE_NUMBERS(group, prefix_inclusive_product, prefix_inclusive<product>) \
  METALLOID_DEFINE_NUMBERS(group, prefix_exclusive_product, prefix_exclusive<product>) \
  METALLOID_DEFINE_WORDS(group, and, reduce<bitwise_and>) \
  METALLOID_DEFINE_WORDS(group, or, reduce<bitwise_or>) \
  METALLOID_DEFINE_WORDS(group, xor, reduce<bitwise_xor>) \
  METALLOID_DEFINE_MOVE(group, broadcast) \
  METALLOID_DEFINE_MOVE(group, shuffle) \
  METALLOID_DEFINE_MOVE(group, shuffle_xor) \
  METALLOID_DEFINE_MOVE(group, shuffle_up) \
  METALLOID_DEFINE_MOVE(group, shuffle_down) \
  METALLOID_DEFINE_MOVE(group, shuffle_rotate_up) \
  METALLOID_DEFINE_MOVE(group, shuffle_rotate_down) \
  METALLOID_DEFINE_FILL(group, shuffle_and_fill_up) \
  METALLOID_DEFINE_FILL(group, shuffle_and_fill_down)

METALLOID_DEFINE_GROUP(simd)
METALLOID_DEFINE_GROUP(quad)

#undef METALLOID_DEFINE1
#undef METALLOID_DEFINE_NUMBERS
#undef METALLOID_DEFINE_WORDS
#undef METALLOID_DEFINE_MOVE1
#undef METALLOID_DEFINE_MOVE
#undef METALLOID_DEFINE_FILL1
#undef METALLOID_DEFINE_FILL
#undef METALLOID_DEFINE_GROUP

// ---- votes --------------------------------------------------------------------------------------
METALLOID_DEVICE_FUNCTION ulong __msl_simd_ballot(bool vote) {
  using namespace metalloid::simt;
  return numbers_of(ballot(active_lanes(), vote));
}
METALLOID_DEVICE_FUNCTION ulong __msl_quad_ballot(bool vote) {
  return __msl_simd_ballot(vote) >> metalloid::simt::first_lane_of_quad() & 0xf;
}

#define METALLOID_DEFINE_BROADCAST_FIRST(suffix, T) \
  METALLOID_DEVICE_FUNCTION T __msl_simd_broadcast_first_##suffix(T data) { \
    using namespace metalloid::simt; \
    const uint members = active_lanes(); \
    return read_lane(members, data, __builtin_ctz(numbers_of(members))); \
  } \
  METALLOID_DEVICE_FUNCTION T __msl_quad_broadcast_first_##suffix(T data) { \
    using namespace metalloid::simt; \
    const uint members = active_lanes(), first = first_lane_of_quad(); \
    return read_lane(members, data, first + __builtin_ctz(numbers_of(members) >> first)); \
  }
METALLOID_DEFINE_BROADCAST_FIRST(b32, uint)
METALLOID_DEFINE_BROADCAST_FIRST(b64, ulong)
#undef METALLOID_DEFINE_BROADCAST_FIRST

// ---- matrices -----------------------------------------------------------------------------------
#ifndef METALLOID_TARGET_MULTIPLIES_MATRICES
// The factors of each product come from the lanes that own them (metal_simdgroup_matrix.h).
METALLOID_DEVICE_FUNCTION __msl_two_floats __msl_simdgroup_matrix_multiply_f32(
    float a_first, float a_second, float b_first, float b_second, float c_first, float c_second) {
  const ulong a =
      ulong(__builtin_bit_cast(uint, a_second)) << 32 | __builtin_bit_cast(uint, a_first);
  const ulong b =
      ulong(__builtin_bit_cast(uint, b_second)) << 32 | __builtin_bit_cast(uint, b_first);
  const uint lane = __msl_simd_lane();
  const uint of_row = lane & 0x16, of_column = lane & 0x09;  // bits of the lane's row and column
  float first = c_first, second = c_second;
  for (uint k = 0; k < 8; ++k) {
    const uint as_column = (k & 4) << 1 | (k >> 1 & 1);
    const uint as_row = (k & 4) << 2 | (k & 3) << 1;
    const ulong left = __msl_simd_shuffle_b64(a, of_row | as_column);
    const ulong right = __msl_simd_shuffle_b64(b, as_row | of_column);
    const float factor = __builtin_bit_cast(float, uint(left >> 32 * (k & 1)));
    first = __builtin_fmaf(factor, __builtin_bit_cast(float, uint(right)), first);
    second = __builtin_fmaf(factor, __builtin_bit_cast(float, uint(right >> 32)), second);
  }
  return {first, second};
}
#endif
