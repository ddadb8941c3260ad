// The traits that all others are made of: constants, conditions and qualifiers.
#pragma once

#include "metal_types.h"

namespace metal {

// ---- constants ----------------------------------------------------------------------------------
template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
  using value_type = T;
  using type = integral_constant;
  constexpr operator T() const { return v; }
  constexpr T operator()() const { return v; }
};

template <bool B>
using bool_constant = integral_constant<bool, B>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

// ---- choosing types -----------------------------------------------------------------------------
template <bool Condition, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool Condition, class T = void>
using enable_if_t = typename enable_if<Condition, T>::type;

template <bool Condition, class T, class F>
struct conditional {
  using type = T;
};
template <class T, class F>
struct conditional<false, T, F> {
  using type = F;
};
template <bool Condition, class T, class F>
using conditional_t = typename conditional<Condition, T, F>::type;

template <class...>
struct conjunction : true_type {};
template <class First, class... Rest>
struct conjunction<First, Rest...>
    : conditional_t<bool(First::value), conjunction<Rest...>, false_type> {};
template <class... Traits>
inline constexpr bool conjunction_v = conjunction<Traits...>::value;

template <class...>
struct disjunction : false_type {};
template <class First, class... Rest>
struct disjunction<First, Rest...>
    : conditional_t<bool(First::value), true_type, disjunction<Rest...>> {};
template <class... Traits>
inline constexpr bool disjunction_v = disjunction<Traits...>::value;

template <class Trait>
struct negation : bool_constant<!bool(Trait::value)> {};
template <class Trait>
inline constexpr bool negation_v = negation<Trait>::value;

// The spelling of Apple's library, which published code uses.
template <class... Traits>
using _conjunction = conjunction<Traits...>;
template <class... Traits>
using _disjunction = disjunction<Traits...>;
template <class Trait>
using _negation = negation<Trait>;

template <class A, class B>
struct is_same : false_type {};
template <class A>
struct is_same<A, A> : true_type {};
template <class A, class B>
inline constexpr bool is_same_v = is_same<A, B>::value;

// ---- taking qualifiers off ----------------------------------------------------------------------
// An address space is a qualifier too: `device T` and `const device T` are types of their own, and
// clang matches neither to a partial specialisation for plain `const T`.
template <class T>
struct remove_addrspace {
  using type = T;
};
template <class T>
struct remove_const {
  using type = T;
};
template <class T>
struct remove_const<const T> {
  using type = T;
};
template <class T>
struct remove_volatile {
  using type = T;
};
template <class T>
struct remove_volatile<volatile T> {
  using type = T;
};

#define METALLOID_QUALIFIERS_IN(space) \
  template <class T> \
  struct remove_addrspace<space T> { \
    using type = T; \
  }; \
  template <class T> \
  struct remove_addrspace<const space T> { \
    using type = const T; \
  }; \
  template <class T> \
  struct remove_addrspace<volatile space T> { \
    using type = volatile T; \
  }; \
  template <class T> \
  struct remove_addrspace<const volatile space T> { \
    using type = const volatile T; \
  }; \
  template <class T> \
  struct remove_const<const space T> { \
    using type = space T; \
  }; \
  template <class T> \
  struct remove_volatile<volatile space T> { \
    using type = space T; \
  };
METALLOID_FOR_EACH_SPACE(METALLOID_QUALIFIERS_IN)
#undef METALLOID_QUALIFIERS_IN

template <class T>
using remove_addrspace_t = typename remove_addrspace<T>::type;
template <class T>
using remove_const_t = typename remove_const<T>::type;
template <class T>
using remove_volatile_t = typename remove_volatile<T>::type;

template <class T>
struct remove_cv {
  using type = remove_const_t<remove_volatile_t<T>>;
};
template <class T>
using remove_cv_t = typename remove_cv<T>::type;

template <class T>
struct remove_reference {
  using type = T;
};
template <class T>
struct remove_reference<T&> {
  using type = T;
};
template <class T>
struct remove_reference<T&&> {
  using type = T;
};
template <class T>
using remove_reference_t = typename remove_reference<T>::type;

template <class T>
struct remove_cvref {
  using type = remove_cv_t<remove_reference_t<T>>;
};
template <class T>
using remove_cvref_t = typename remove_cvref<T>::type;

template <class T>
struct remove_pointer {
  using type = T;
};
template <class T>
struct remove_pointer<T*> {
  using type = T;
};
template <class T>
struct remove_pointer<T* const> {
  using type = T;
};
template <class T>
using remove_pointer_t = typename remove_pointer<T>::type;

template <class T>
struct remove_extent {
  using type = T;
};
template <class T>
struct remove_extent<T[]> {
  using type = T;
};
template <class T, size_t N>
struct remove_extent<T[N]> {
  using type = T;
};
template <class T>
using remove_extent_t = typename remove_extent<T>::type;

// ---- putting qualifiers on ----------------------------------------------------------------------
template <class T>
struct add_const {
  using type = const T;
};
template <class T>
using add_const_t = const T;

template <class T>
struct add_volatile {
  using type = volatile T;
};
template <class T>
using add_volatile_t = volatile T;

template <class T>
struct add_cv {
  using type = const volatile T;
};
template <class T>
using add_cv_t = const volatile T;

}  // namespace metal

namespace metalloid {

// T without const, volatile and address space.
template <class T>
using unqualified = metal::remove_cv_t<metal::remove_addrspace_t<metal::remove_cv_t<T>>>;

// The type of a value of T: no reference either.
template <class T>
using bare = unqualified<metal::remove_reference_t<T>>;

}  // namespace metalloid

namespace metal {

template <class T>
struct decay {
  using type = metalloid::bare<T>;
};
template <class T>
using decay_t = typename decay<T>::type;

}  // namespace metal
