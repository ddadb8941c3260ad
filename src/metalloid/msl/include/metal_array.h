// array<T, N> (MSL specification, "Array"), and std::initializer_list, which the language needs.
#pragma once

#include "metal_type_traits.h"

namespace std {

// The compiler builds this type for `{a, b, c}` and expects a pointer and a length in this order.
template <class T>
class initializer_list {
 public:
  using value_type = T;
  using size_type = size_t;
  using iterator = const T*;
  using const_iterator = const T*;

  constexpr initializer_list() = default;
  constexpr size_t size() const { return length; }
  constexpr const T* begin() const { return first; }
  constexpr const T* end() const { return first + length; }

 private:
  constexpr initializer_list(const T* first, size_t length) : first(first), length(length) {}

  const T* first = nullptr;
  size_t length = 0;
};

}  // namespace std

namespace metal {

using std::initializer_list;

// An aggregate, so that it can be initialised like the array it holds.
template <class T, size_t N>
struct array {
  using value_type = T;
  using size_type = size_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  T elements[N];

#if __cplusplus >= 202302L
  // An element is in the space of the object, whichever that is.
  template <class A>
  METALLOID_INLINE constexpr auto& operator[](this A&& self, size_t i) {
    return self.elements[i];
  }
  template <class A>
  METALLOID_INLINE constexpr auto& front(this A&& self) {
    return self.elements[0];
  }
  template <class A>
  METALLOID_INLINE constexpr auto& back(this A&& self) {
    return self.elements[N - 1];
  }
  template <class A>
  METALLOID_INLINE constexpr auto data(this A&& self) {
    return &self.elements[0];
  }
  template <class A>
  METALLOID_INLINE constexpr auto begin(this A&& self) {
    return &self.elements[0];
  }
  template <class A>
  METALLOID_INLINE constexpr auto end(this A&& self) {
    return &self.elements[0] + N;
  }
#else
  METALLOID_INLINE constexpr T& operator[](size_t i) { return elements[i]; }
  METALLOID_INLINE constexpr const T& operator[](size_t i) const { return elements[i]; }
  METALLOID_INLINE constexpr T& front() { return elements[0]; }
  METALLOID_INLINE constexpr const T& front() const { return elements[0]; }
  METALLOID_INLINE constexpr T& back() { return elements[N - 1]; }
  METALLOID_INLINE constexpr const T& back() const { return elements[N - 1]; }
  METALLOID_INLINE constexpr T* data() { return elements; }
  METALLOID_INLINE constexpr const T* data() const { return elements; }
  METALLOID_INLINE constexpr T* begin() { return elements; }
  METALLOID_INLINE constexpr const T* begin() const { return elements; }
  METALLOID_INLINE constexpr T* end() { return elements + N; }
  METALLOID_INLINE constexpr const T* end() const { return elements + N; }
#endif
  METALLOID_INLINE static constexpr size_t size() { return N; }
  METALLOID_INLINE static constexpr size_t max_size() { return N; }
  METALLOID_INLINE static constexpr bool empty() { return N == 0; }

  METALLOID_INLINE constexpr void fill(const T& value) {
    for (size_t i = 0; i < N; ++i) elements[i] = value;
  }
};

template <class T, class... Rest>
array(T, Rest...) -> array<T, 1 + sizeof...(Rest)>;

}  // namespace metal
