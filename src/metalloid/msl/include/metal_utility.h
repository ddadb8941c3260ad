// Small things of namespace metal that belong to no chapter of their own.
#pragma once

#include "metal_array.h"

namespace metal {

// ---- pair ---------------------------------------------------------------------------------------
template <class First, class Second>
struct pair {
  using first_type = First;
  using second_type = Second;
  First first;
  Second second;
};

template <class First, class Second>
METALLOID_INLINE constexpr pair<First, Second> make_pair(First first, Second second) {
  return {first, second};
}

template <class T>
METALLOID_INLINE constexpr void swap(T& a, T& b) {
  T before = a;
  a = b;
  b = before;
}

template <class T>
METALLOID_INLINE constexpr T* addressof(T& object) {
  return __builtin_addressof(object);
}

template <class Container>
METALLOID_INLINE constexpr auto size(const Container& container) {
  return container.size();
}

// ---- uniform: a promise to the compiler, which needs none here ----------------------------------
template <class T>
using uniform = T;

template <class T>
METALLOID_INLINE constexpr T make_uniform(T value) {
  return value;
}

}  // namespace metal
