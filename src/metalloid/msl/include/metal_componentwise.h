// How a function on scalars becomes a function on vectors.
#pragma once

#include "metal_packed.h"

// The body of a function on vectors: `function` of each component, collected in a vec<R, N>.
// Written out, not as a loop, so that no loop is left for an optimiser that unrolls too late. What
// follows the vector goes to every call as it is.
#define METALLOID_COMPONENTWISE1(R, function, a, ...) \
  if constexpr (N == 2) { \
    return vec<R, 2>(function(a.x __VA_OPT__(,) __VA_ARGS__), \
                     function(a.y __VA_OPT__(,) __VA_ARGS__)); \
  } else if constexpr (N == 3) { \
    return vec<R, 3>(function(a.x __VA_OPT__(,) __VA_ARGS__), \
                     function(a.y __VA_OPT__(,) __VA_ARGS__), \
                     function(a.z __VA_OPT__(,) __VA_ARGS__)); \
  } else { \
    return vec<R, 4>(function(a.x __VA_OPT__(,) __VA_ARGS__), \
                     function(a.y __VA_OPT__(,) __VA_ARGS__), \
                     function(a.z __VA_OPT__(,) __VA_ARGS__), \
                     function(a.w __VA_OPT__(,) __VA_ARGS__)); \
  }

#define METALLOID_COMPONENTWISE2(R, function, a, b, ...) \
  if constexpr (N == 2) { \
    return vec<R, 2>(function(a.x, b.x __VA_OPT__(,) __VA_ARGS__), \
                     function(a.y, b.y __VA_OPT__(,) __VA_ARGS__)); \
  } else if constexpr (N == 3) { \
    return vec<R, 3>(function(a.x, b.x __VA_OPT__(,) __VA_ARGS__), \
                     function(a.y, b.y __VA_OPT__(,) __VA_ARGS__), \
                     function(a.z, b.z __VA_OPT__(,) __VA_ARGS__)); \
  } else { \
    return vec<R, 4>(function(a.x, b.x __VA_OPT__(,) __VA_ARGS__), \
                     function(a.y, b.y __VA_OPT__(,) __VA_ARGS__), \
                     function(a.z, b.z __VA_OPT__(,) __VA_ARGS__), \
                     function(a.w, b.w __VA_OPT__(,) __VA_ARGS__)); \
  }

#define METALLOID_COMPONENTWISE3(R, function, a, b, c) \
  if constexpr (N == 2) { \
    return vec<R, 2>(function(a.x, b.x, c.x), function(a.y, b.y, c.y)); \
  } else if constexpr (N == 3) { \
    return vec<R, 3>(function(a.x, b.x, c.x), function(a.y, b.y, c.y), function(a.z, b.z, c.z)); \
  } else { \
    return vec<R, 4>(function(a.x, b.x, c.x), function(a.y, b.y, c.y), function(a.z, b.z, c.z), \
                     function(a.w, b.w, c.w)); \
  }

// The vector forms of a scalar function, to be declared in its namespace within metal. `R` is
// the element type of the result in terms of T, the element type of the operands; `function` is the
// qualified name, since the operands would find further overloads by argument-dependent lookup.
//
// A function of several operands has two forms. The one on equal vectors is more special than a
// user's own `template <class T> T f(T, T)`, which must lose as it would against Apple's plain
// overloads. The other lets scalars and packed vectors convert to the vector among the operands.
#define METALLOID_VECTOR_FORMS1(R, name, function) \
  template <class T, int N> \
  METALLOID_INLINE vec<R, N> name(vec<T, N> a) { \
    METALLOID_COMPONENTWISE1(R, function, a) \
  } \
  template <class T, int N> \
  METALLOID_INLINE vec<R, N> name(packed_vec<T, N> a) { \
    return function(vec<T, N>(a)); \
  }

#define METALLOID_VECTOR_FORMS2(R, name, function) \
  template <class T, int N> \
  METALLOID_INLINE vec<R, N> name(vec<T, N> a, vec<T, N> b) { \
    METALLOID_COMPONENTWISE2(R, function, a, b) \
  } \
  METALLOID_MIXED_FORM2(name, function)

#define METALLOID_VECTOR_FORMS3(R, name, function) \
  template <class T, int N> \
  METALLOID_INLINE vec<R, N> name(vec<T, N> a, vec<T, N> b, vec<T, N> c) { \
    METALLOID_COMPONENTWISE3(R, function, a, b, c) \
  } \
  METALLOID_MIXED_FORM3(name, function)

#define METALLOID_MIXED_FORM2(name, function) \
  template <class A, class B, class V = metalloid::common_vector<A, B>> \
  METALLOID_INLINE auto name(A a, B b) { \
    return function(V(a), V(b)); \
  }

#define METALLOID_MIXED_FORM3(name, function) \
  template <class A, class B, class C, class V = metalloid::common_vector<A, B, C>> \
  METALLOID_INLINE auto name(A a, B b, C c) { \
    return function(V(a), V(b), V(c)); \
  }

namespace metalloid {

// What an operand asks for: a vector type, nothing (void) if it is a scalar, or no type at all, so
// that the overload drops out, if it is neither.
template <class Operand>
struct vector_of : metal::enable_if<is_scalar<Operand> || __is_enum(Operand)> {};
template <class T, int N>
struct vector_of<metal::vec<T, N>> {
  using type = metal::vec<T, N>;
};
template <class T, int N>
struct vector_of<metal::packed_vec<T, N>> {
  using type = metal::vec<T, N>;
};

// The one vector type that all operands agree on; no type if they do not.
template <class... Wishes>
struct agreement;
template <class V>
struct agreement<V> {
  using type = V;
};
template <class V, class... Rest>
struct agreement<V, V, Rest...> : agreement<V, Rest...> {};
template <class V, class... Rest>
struct agreement<V, void, Rest...> : agreement<V, Rest...> {};
template <class V, class... Rest>
struct agreement<void, V, Rest...> : agreement<V, Rest...> {};
template <class... Rest>
struct agreement<void, void, Rest...> : agreement<void, Rest...> {};
template <class V, class W, class... Rest>
struct agreement<V, W, Rest...> {};

// The vector type among the operands. No type, so that the overload drops out, if all are scalars.
template <class... Operands>
using common_vector = typename vector_of<
    typename agreement<typename vector_of<Operands>::type...>::type>::type;

template <>
struct vector_of<void> {};

// The result of a floating-point function on scalars: integers count as float.
template <class... Operands>
using float_result =
    metal::conditional_t<is_integer<metal::common_type_t<Operands...>>, float,
                         metal::common_type_t<Operands...>>;

template <class T>
using if_bfloat_or_integer =
    metal::enable_if_t<is_integer<T> || metal::is_same_v<T, bfloat>, int>;
}  // namespace metalloid
