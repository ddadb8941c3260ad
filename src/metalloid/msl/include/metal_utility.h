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

// ---- logging: kernels run as if it were switched off --------------------------------------------
enum log_type {
  log_type_debug,
  log_type_info,
  log_type_default,
  log_type_error,
  log_type_fault,
};

struct os_log {
  constexpr os_log(constant char* subsystem, constant char* category) {}

  template <class... Values>
  METALLOID_INLINE void log_with_type(log_type, constant char* format, Values...) const {}
  template <class... Values>
  METALLOID_INLINE void log_debug(constant char* format, Values...) const {}
  template <class... Values>
  METALLOID_INLINE void log_info(constant char* format, Values...) const {}
  template <class... Values>
  METALLOID_INLINE void log(constant char* format, Values...) const {}
  template <class... Values>
  METALLOID_INLINE void log_error(constant char* format, Values...) const {}
  template <class... Values>
  METALLOID_INLINE void log_fault(constant char* format, Values...) const {}
};

inline constexpr os_log os_log_default(nullptr, nullptr);

}  // namespace metal
