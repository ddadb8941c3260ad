// The chapters "SIMD-Group Functions" and "Quad-Group Functions" of the MSL specification.
//
// Each function here has forms for every scalar and vector type, and puts them through the few
// types of the external functions: reductions of small integers run in 32 bits, those of half and
// bfloat in float with one rounding at the end, and moves carry bits.
#pragma once

#include "metal_matrix.h"
#include "target_externals.h"

namespace metalloid {

// The type in which a reduction of T runs.
template <class T>
using lane_number = metal::conditional_t<
    is_float<T>, float,
    typename sized_integer<sizeof(T) == 8 ? 8 : 4, !is_unsigned_integer<T>()>::type>;

// The word in which the bits of a T travel.
template <class T>
using lane_word = metal::conditional_t<sizeof(T) == 8, ulong, uint>;

template <class T>
METALLOID_INLINE lane_word<T> to_word(T value) {
  return metal::as_type<bits_type<T>>(value);
}
template <class T>
METALLOID_INLINE T from_word(lane_word<T> word) {
  return metal::as_type<T>(bits_type<T>(word));
}

}  // namespace metalloid

// ---- one function: its external forms as overloads, and its forms for every type ----------------
#define METALLOID_OVERLOAD1(name, suffix, T) \
  METALLOID_INLINE T name(T data) { return __msl_##name##_##suffix(data); }
#define METALLOID_OVERLOAD_MOVE(name, suffix, T) \
  METALLOID_INLINE T name(T data, ushort lane) { return __msl_##name##_##suffix(data, lane); }
#define METALLOID_OVERLOAD_FILL(name, suffix, T) \
  METALLOID_INLINE T name(T data, T filling, ushort delta, ushort modulo) { \
    return __msl_##name##_##suffix(data, filling, delta, modulo); \
  }

#define METALLOID_LANE_REDUCTION(name) \
  namespace metalloid { \
  METALLOID_FOR_EACH_LANE_NUMBER(METALLOID_OVERLOAD1, name) \
  } \
  namespace metal { \
  template <class T, metalloid::if_operands<T> = 0> \
  METALLOID_INLINE T name(T data) { \
    return T(metalloid::name(metalloid::lane_number<T>(data))); \
  } \
  METALLOID_VECTOR_FORMS1(T, name, metal::name) \
  }

// Takes any scalar, by its bits.
#define METALLOID_LANE_WORD_FUNCTION(name) \
  namespace metalloid { \
  METALLOID_FOR_EACH_LANE_WORD(METALLOID_OVERLOAD1, name) \
  } \
  namespace metal { \
  template <class T, metalloid::if_scalars<T> = 0> \
  METALLOID_INLINE T name(T data) { \
    return metalloid::from_word<T>(metalloid::name(metalloid::to_word(data))); \
  } \
  METALLOID_VECTOR_FORMS1(T, name, metal::name) \
  }

#define METALLOID_LANE_BROADCAST_FIRST(name) \
  METALLOID_LANE_WORD_FUNCTION(name) \
  namespace metal { \
  template <class T, int C, int R> \
  METALLOID_INLINE matrix<T, C, R> name(matrix<T, C, R> data) { \
    for (auto& column : data.columns) column = metal::name(column); \
    return data; \
  } \
  }

#define METALLOID_LANE_MOVE(name) \
  namespace metalloid { \
  METALLOID_FOR_EACH_LANE_WORD(METALLOID_OVERLOAD_MOVE, name) \
  } \
  namespace metal { \
  template <class T, metalloid::if_scalars<T> = 0> \
  METALLOID_INLINE T name(T data, ushort lane) { \
    return metalloid::from_word<T>(metalloid::name(metalloid::to_word(data), lane)); \
  } \
  template <class T, int N> \
  METALLOID_INLINE vec<T, N> name(vec<T, N> data, ushort lane) { \
    METALLOID_COMPONENTWISE1(T, metal::name, data, lane) \
  } \
  template <class T, int N> \
  METALLOID_INLINE vec<T, N> name(packed_vec<T, N> data, ushort lane) { \
    return metal::name(vec<T, N>(data), lane); \
  } \
  template <class T, int C, int R> \
  METALLOID_INLINE matrix<T, C, R> name(matrix<T, C, R> data, ushort lane) { \
    for (auto& column : data.columns) column = metal::name(column, lane); \
    return data; \
  } \
  }

// Without `modulo` the group is filled as a whole.
#define METALLOID_LANE_FILL(name, group_size) \
  namespace metalloid { \
  METALLOID_FOR_EACH_LANE_WORD(METALLOID_OVERLOAD_FILL, name) \
  } \
  namespace metal { \
  template <class T, metalloid::if_scalars<T> = 0> \
  METALLOID_INLINE T name(T data, metalloid::no_deduction<T> filling, ushort delta, \
                          ushort modulo = group_size) { \
    return metalloid::from_word<T>(metalloid::name( \
        metalloid::to_word(data), metalloid::to_word<T>(filling), delta, modulo)); \
  } \
  template <class T, int N> \
  METALLOID_INLINE vec<T, N> name(vec<T, N> data, metalloid::no_deduction<vec<T, N>> filling, \
                                  ushort delta, ushort modulo = group_size) { \
    METALLOID_COMPONENTWISE2(T, metal::name, data, filling, delta, modulo) \
  } \
  }

METALLOID_FOR_EACH_LANE_REDUCTION(METALLOID_LANE_REDUCTION, simd)
METALLOID_FOR_EACH_LANE_REDUCTION(METALLOID_LANE_REDUCTION, quad)
METALLOID_FOR_EACH_LANE_BITWISE_REDUCTION(METALLOID_LANE_WORD_FUNCTION, simd)
METALLOID_FOR_EACH_LANE_BITWISE_REDUCTION(METALLOID_LANE_WORD_FUNCTION, quad)
METALLOID_LANE_BROADCAST_FIRST(simd_broadcast_first)
METALLOID_LANE_BROADCAST_FIRST(quad_broadcast_first)
METALLOID_FOR_EACH_LANE_MOVE(METALLOID_LANE_MOVE, simd)
METALLOID_FOR_EACH_LANE_MOVE(METALLOID_LANE_MOVE, quad)
METALLOID_LANE_FILL(simd_shuffle_and_fill_up, 32)
METALLOID_LANE_FILL(simd_shuffle_and_fill_down, 32)
METALLOID_LANE_FILL(quad_shuffle_and_fill_up, 4)
METALLOID_LANE_FILL(quad_shuffle_and_fill_down, 4)

#undef METALLOID_OVERLOAD1
#undef METALLOID_OVERLOAD_MOVE
#undef METALLOID_OVERLOAD_FILL
#undef METALLOID_LANE_REDUCTION
#undef METALLOID_LANE_WORD_FUNCTION
#undef METALLOID_LANE_BROADCAST_FIRST
#undef METALLOID_LANE_MOVE
#undef METALLOID_LANE_FILL

namespace metal {

// ---- votes --------------------------------------------------------------------------------------
// One bit for each thread of the group; `all` asks for the bits of all its threads.
#define METALLOID_VOTE(name, every_thread) \
  class name { \
   public: \
    using vote_t = ulong; \
    METALLOID_INLINE explicit constexpr name(vote_t votes = 0) : votes(votes) {} \
    METALLOID_INLINE explicit constexpr operator vote_t() const { return votes; } \
    METALLOID_INLINE constexpr bool all() const { return votes == every_thread; } \
    METALLOID_INLINE constexpr bool any() const { return votes != 0; } \
\
   private: \
    vote_t votes; \
  };
METALLOID_VOTE(simd_vote, 0xffffffff)
METALLOID_VOTE(quad_vote, 0xf)
#undef METALLOID_VOTE

METALLOID_INLINE simd_vote simd_ballot(bool vote) { return simd_vote(__msl_simd_ballot(vote)); }
METALLOID_INLINE quad_vote quad_ballot(bool vote) { return quad_vote(__msl_quad_ballot(vote)); }

METALLOID_INLINE simd_vote simd_active_threads_mask() { return simd_ballot(true); }
METALLOID_INLINE quad_vote quad_active_threads_mask() { return quad_ballot(true); }

// Inactive threads have no say.
METALLOID_INLINE bool simd_all(bool vote) { return __msl_simd_ballot(!vote) == 0; }
METALLOID_INLINE bool quad_all(bool vote) { return __msl_quad_ballot(!vote) == 0; }
METALLOID_INLINE bool simd_any(bool vote) { return __msl_simd_ballot(vote) != 0; }
METALLOID_INLINE bool quad_any(bool vote) { return __msl_quad_ballot(vote) != 0; }

METALLOID_INLINE bool simd_is_first() {
  return __msl_simd_lane() == uint(__builtin_ctzl(__msl_simd_ballot(true)));
}
METALLOID_INLINE bool quad_is_first() {
  return (__msl_simd_lane() & 3) == uint(__builtin_ctzl(__msl_quad_ballot(true)));
}

// Helper threads exist in fragment functions only.
METALLOID_INLINE constexpr bool simd_is_helper_thread() { return false; }
METALLOID_INLINE constexpr bool quad_is_helper_thread() { return false; }

// Apple's name of the trait "may be an operand of these functions".
template <class T>
struct __is_valid_simdgroup_type : bool_constant<is_arithmetic_v<T> || is_vector_v<T>> {};
template <class T>
inline constexpr bool __is_valid_simdgroup_type_v = __is_valid_simdgroup_type<T>::value;

}  // namespace metal
