// The operations of target_externals.h on NVIDIA GPUs, where a simdgroup is a warp.
//
// MSL's functions work on the active threads, so every instruction names the active threads as its
// members: naming all 32 would wait for ever for those that took the other branch. Which those are
// is worked out later where it can be (backends/cuda/compile/member_masks.py).
#pragma once

#include "lanes_nvptx.h"
#include "metal_min_max.h"
#include "report_nvptx.h"

#define METALLOID_DEVICE_FUNCTION \
  extern "C" inline __attribute__((always_inline, convergent, nothrow))

// ---- barriers and ids ---------------------------------------------------------------------------
// Both barriers order the memory accesses of their threads in every space.
METALLOID_DEVICE_FUNCTION void __msl_threadgroup_barrier(uint) { __nvvm_barrier_sync(0); }
METALLOID_DEVICE_FUNCTION void __msl_simdgroup_barrier(uint) {
  __nvvm_bar_warp_sync(__nvvm_activemask());
}
METALLOID_DEVICE_FUNCTION uint __msl_simd_lane(void) { return mtl_lane(); }
METALLOID_DEVICE_FUNCTION uint __msl_simdgroup_index(void) {
  const uint row = __nvvm_read_ptx_sreg_tid_y() +
                   __nvvm_read_ptx_sreg_ntid_y() * __nvvm_read_ptx_sreg_tid_z();
  return (__nvvm_read_ptx_sreg_tid_x() + __nvvm_read_ptx_sreg_ntid_x() * row) / 32;
}

namespace metalloid {
namespace nvptx {

METALLOID_INLINE uint lane() { return mtl_lane(); }
// For instructions, and as bits of numbers in the simdgroup.
METALLOID_INLINE uint active_lanes() { return __nvvm_activemask(); }
METALLOID_INLINE uint numbers_of(uint lanes) { return mtl_numbers_of_lanes(lanes); }
METALLOID_INLINE uint first_lane_of_quad() { return lane() & ~3u; }

// What `move` makes of each 32-bit word of a value.
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
  const uint lane = mtl_lane_of(source);
  return by_words(value, [=](uint word) METALLOID_INLINE_LAMBDA {
    return uint(__nvvm_shfl_sync_idx_i32(members, word, lane, 31));
  });
}
// What `joined` makes of the value of the thread so many numbers below; `otherwise` if there is none.
template <class T, class Join>
METALLOID_INLINE T join_below(uint members, T value, uint distance, T otherwise, Join joined) {
  bool exists = false;
  const T other = by_words(value, [=, &exists](uint word) METALLOID_INLINE_LAMBDA {
    const ulong earlier = mtl_from_below(members, word, distance);
    exists = earlier >> 32 != 0;
    return uint(earlier);
  });
  return exists ? joined(other) : otherwise;
}

// ---- reductions ---------------------------------------------------------------------------------
// What a minimum and a maximum begin with: NaN loses against any number.
template <class T>
constexpr T smallest() {
  if constexpr (is_float<T>) {
    return __builtin_nanf("");
  } else {
    return is_unsigned_integer<T>() ? T(0) : T(T(1) << (8 * sizeof(T) - 1));
  }
}
template <class T>
constexpr T largest() {
  if constexpr (is_float<T>) {
    return __builtin_nanf("");
  } else {
    return T(~smallest<T>());
  }
}

// An operation of a reduction and the value that changes nothing.
#define METALLOID_OPERATION(name, neutral_value, result) \
  struct name { \
    template <class T> \
    static constexpr T neutral = neutral_value; \
    template <class T> \
    METALLOID_INLINE static T of(T a, T b) { \
      return result; \
    } \
  };
METALLOID_OPERATION(sum, T(0), a + b)
METALLOID_OPERATION(product, T(1), a * b)
METALLOID_OPERATION(min, largest<T>(), metalloid::min(a, b))
METALLOID_OPERATION(max, smallest<T>(), metalloid::max(a, b))
METALLOID_OPERATION(bitwise_and, T(-1), a & b)
METALLOID_OPERATION(bitwise_or, T(0), a | b)
METALLOID_OPERATION(bitwise_xor, T(0), a ^ b)
#undef METALLOID_OPERATION

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

// What one instruction does, from compute capability 8.0 on.
template <class Operation, class T>
inline constexpr bool has_instruction = false;
#if METALLOID_COMPUTE_CAPABILITY >= 80
#define METALLOID_REDUX(operation, T, instruction) \
  template <> \
  inline constexpr bool has_instruction<operation, T> = true; \
  METALLOID_INLINE T reduce_instruction(operation, uint members, T value) { \
    return T(__nvvm_redux_sync_##instruction(value, members)); \
  }
METALLOID_REDUX(sum, int, add)
METALLOID_REDUX(sum, uint, add)
METALLOID_REDUX(min, int, min)
METALLOID_REDUX(min, uint, umin)
METALLOID_REDUX(max, int, max)
METALLOID_REDUX(max, uint, umax)
METALLOID_REDUX(bitwise_and, uint, and)
METALLOID_REDUX(bitwise_or, uint, or)
METALLOID_REDUX(bitwise_xor, uint, xor)
#undef METALLOID_REDUX
#endif

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
  return (members >> mtl_lane_of(source) & 1) != 0 ? moved : T(0);
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

}  // namespace nvptx
}  // namespace metalloid

// ---- definitions --------------------------------------------------------------------------------
#define METALLOID_DEFINE1(suffix, T, group, name, function) \
  METALLOID_DEVICE_FUNCTION T __msl_##group##_##name##_##suffix(T data) { \
    using namespace metalloid::nvptx; \
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
    using namespace metalloid::nvptx; \
    return metalloid::nvptx::name<group##_lanes>(data, lane_or_delta); \
  }
#define METALLOID_DEFINE_MOVE(group, name) \
  METALLOID_DEFINE_MOVE1(b32, uint, group, name) METALLOID_DEFINE_MOVE1(b64, ulong, group, name)

#define METALLOID_DEFINE_FILL1(suffix, T, group, name) \
  METALLOID_DEVICE_FUNCTION T __msl_##group##_##name##_##suffix(T data, T filling, ushort delta, \
                                                                ushort modulo) { \
    using namespace metalloid::nvptx; \
    return metalloid::nvptx::name<group##_lanes>(data, filling, delta, modulo); \
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
  using namespace metalloid::nvptx;
  return numbers_of(uint(__nvvm_vote_ballot_sync(active_lanes(), vote)));
}
METALLOID_DEVICE_FUNCTION ulong __msl_quad_ballot(bool vote) {
  return __msl_simd_ballot(vote) >> metalloid::nvptx::first_lane_of_quad() & 0xf;
}

#define METALLOID_DEFINE_BROADCAST_FIRST(suffix, T) \
  METALLOID_DEVICE_FUNCTION T __msl_simd_broadcast_first_##suffix(T data) { \
    using namespace metalloid::nvptx; \
    const uint members = active_lanes(); \
    return read_lane(members, data, __builtin_ctz(numbers_of(members))); \
  } \
  METALLOID_DEVICE_FUNCTION T __msl_quad_broadcast_first_##suffix(T data) { \
    using namespace metalloid::nvptx; \
    const uint members = active_lanes(), first = first_lane_of_quad(); \
    return read_lane(members, data, first + __builtin_ctz(numbers_of(members) >> first)); \
  }
METALLOID_DEFINE_BROADCAST_FIRST(b32, uint)
METALLOID_DEFINE_BROADCAST_FIRST(b64, ulong)
#undef METALLOID_DEFINE_BROADCAST_FIRST

// ---- matrices -----------------------------------------------------------------------------------
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
#undef METALLOID_DEVICE_FUNCTION
