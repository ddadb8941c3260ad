// Logging and assertions (MSL specification, "Logging Functions").
//
// A message leaves the kernel as its format and its values, taken apart into scalars; the text is
// made on the host.
#pragma once

#include "metal_vector.h"
#include "target_externals.h"

namespace metalloid {

// One scalar, or one lane of a vector. Read in Python by metalloid.runtime.launch.log_messages.
struct log_value {
  uchar kind;  // 'i', 'u', 'f', or 's' for text
  uchar lanes; // of the vector it begins; 0 for its further lanes
  union {
    long i;
    ulong u;
    double f;
    constant char* s;
  };
};

template <class T>
METALLOID_INLINE log_value log_value_of(T value, uchar lanes) {
  log_value result = {};
  result.lanes = lanes;
  if constexpr (__is_same(T, constant char*)) {
    result.kind = 's';
    result.s = value;
  } else if constexpr (__is_pointer(T)) {
    result.kind = 'u';
    result.u = (ulong)value;
  } else if constexpr (metal::is_floating_point_v<T>) {
    result.kind = 'f';
    result.f = double(float(value));
  } else if constexpr (T(-1) < T(0)) {
    result.kind = 'i';
    result.i = long(value);
  } else {
    result.kind = 'u';
    result.u = ulong(value);
  }
  return result;
}

template <class T>
struct logged {
  static constexpr uint lanes = 1;
  static METALLOID_INLINE void store(thread log_value* into, T value) {
    *into = log_value_of(value, 1);
  }
};
template <class T, int N>
struct logged<metal::vec<T, N>> {
  static constexpr uint lanes = N;
  static METALLOID_INLINE void store(thread log_value* into, metal::vec<T, N> value) {
    for (int i = 0; i < N; ++i) into[i] = log_value_of(T(value[i]), i == 0 ? N : 0);
  }
};
template <class T, int N>
struct logged<metal::packed_vec<T, N>> : logged<metal::vec<T, N>> {};

}  // namespace metalloid

namespace metal {

enum log_type {
  log_type_debug,
  log_type_info,
  log_type_default,
  log_type_error,
  log_type_fault,
};

struct os_log {
  constexpr os_log(constant char* subsystem, constant char* category)
      : _subsystem(subsystem), _category(category) {}

  template <class... Values>
  METALLOID_INLINE void log_with_type(log_type type, constant char* format, Values... given) const {
    constexpr uint count = (0 + ... + metalloid::logged<Values>::lanes);
    metalloid::log_value values[count + 1];
    thread metalloid::log_value* next = values;
    ((metalloid::logged<Values>::store(next, given), next += metalloid::logged<Values>::lanes), ...);
    __msl_log(uint(type), _subsystem, _category, format, values, count);
  }
  template <class... Values>
  METALLOID_INLINE void log_debug(constant char* format, Values... values) const {
    log_with_type(log_type_debug, format, values...);
  }
  template <class... Values>
  METALLOID_INLINE void log_info(constant char* format, Values... values) const {
    log_with_type(log_type_info, format, values...);
  }
  template <class... Values>
  METALLOID_INLINE void log(constant char* format, Values... values) const {
    log_with_type(log_type_default, format, values...);
  }
  template <class... Values>
  METALLOID_INLINE void log_error(constant char* format, Values... values) const {
    log_with_type(log_type_error, format, values...);
  }
  template <class... Values>
  METALLOID_INLINE void log_fault(constant char* format, Values... values) const {
    log_with_type(log_type_fault, format, values...);
  }

 private:
  constant char* _subsystem;
  constant char* _category;
};

inline constexpr os_log os_log_default(nullptr, nullptr);

}  // namespace metal
