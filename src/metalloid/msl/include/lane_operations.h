// The operations of reductions over the threads of a simdgroup.
#pragma once

#include "metal_min_max.h"

namespace metalloid {
namespace simt {

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

// Whether a target reduces values of a type by one instruction.
template <class Operation, class T>
inline constexpr bool has_instruction = false;

}  // namespace simt
}  // namespace metalloid
