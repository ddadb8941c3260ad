// Type traits (MSL specification, chapter 2.19 and the traits of C++ that Metal keeps in `metal::`).
//
// Not defined here on purpose: void_t and is_empty, which published Metal code adds to namespace metal.
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

}  // namespace metal

namespace metalloid {

// The type of a value of T: no reference, no const, no volatile, no address space.
template <class T>
using bare = metal::remove_cv_t<metal::remove_addrspace_t<metal::remove_cv_t<
    metal::remove_reference_t<T>>>>;

}  // namespace metalloid

namespace metal {

template <class T>
struct decay {
  using type = metalloid::bare<T>;
};
template <class T>
using decay_t = typename decay<T>::type;

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

// ---- questions about types ----------------------------------------------------------------------
template <class A, class B>
struct is_same : false_type {};
template <class A>
struct is_same<A, A> : true_type {};
template <class A, class B>
inline constexpr bool is_same_v = is_same<A, B>::value;

}  // namespace metal

namespace metalloid {

// Variable templates of bare types: cheaper to instantiate than classes, and asked very often.
template <class T>
inline constexpr bool is_integer = false;
template <class T>
inline constexpr bool is_float = false;

#define METALLOID_IS_INTEGER(type) \
  template <> \
  inline constexpr bool is_integer<type> = true;
METALLOID_FOR_EACH_INTEGER(METALLOID_IS_INTEGER)
METALLOID_IS_INTEGER(bool)
METALLOID_IS_INTEGER(long long)
METALLOID_IS_INTEGER(unsigned long long)
#undef METALLOID_IS_INTEGER

template <>
inline constexpr bool is_float<half> = true;
template <>
inline constexpr bool is_float<bfloat> = true;
template <>
inline constexpr bool is_float<float> = true;
template <>
inline constexpr bool is_float<double> = true;

template <class T>
inline constexpr bool is_scalar = is_integer<T> || is_float<T>;

template <class T>
constexpr bool is_unsigned_integer() {
  if constexpr (is_integer<T>) {
    return T(-1) > T(0);
  } else {
    return false;
  }
}

}  // namespace metalloid

// A trait and its `_v` form, from an expression over T.
#define METALLOID_TRAIT(name, expression) \
  template <class T> \
  struct name : bool_constant<(expression)> {}; \
  template <class T> \
  inline constexpr bool name##_v = (expression);

namespace metal {

METALLOID_TRAIT(is_integral, metalloid::is_integer<metalloid::bare<T>>)
METALLOID_TRAIT(is_floating_point, metalloid::is_float<metalloid::bare<T>>)
METALLOID_TRAIT(is_arithmetic, metalloid::is_scalar<metalloid::bare<T>>)
METALLOID_TRAIT(is_unsigned, metalloid::is_unsigned_integer<metalloid::bare<T>>())
METALLOID_TRAIT(is_signed, is_arithmetic_v<T> && !is_unsigned_v<T>)
METALLOID_TRAIT(is_void, (is_same_v<remove_cv_t<T>, void>))
METALLOID_TRAIT(is_enum, __is_enum(T))
METALLOID_TRAIT(is_class, __is_class(T))
METALLOID_TRAIT(is_union, __is_union(T))
METALLOID_TRAIT(is_pointer, __is_pointer(T))
METALLOID_TRAIT(is_array, __is_array(T))
METALLOID_TRAIT(is_function, __is_function(T))
METALLOID_TRAIT(is_reference, __is_reference(T))
METALLOID_TRAIT(is_lvalue_reference, __is_lvalue_reference(T))
METALLOID_TRAIT(is_rvalue_reference, __is_rvalue_reference(T))
METALLOID_TRAIT(is_const, __is_const(T))
METALLOID_TRAIT(is_volatile, __is_volatile(T))
METALLOID_TRAIT(is_scalar, is_arithmetic_v<T> || __is_enum(T) || __is_pointer(T))
METALLOID_TRAIT(is_fundamental, is_arithmetic_v<T> || is_void_v<T>)
METALLOID_TRAIT(is_trivial, __is_trivially_copyable(T) && __is_trivially_constructible(T))
METALLOID_TRAIT(is_trivially_copyable, __is_trivially_copyable(T))
METALLOID_TRAIT(is_trivially_default_constructible, __is_trivially_constructible(T))
METALLOID_TRAIT(is_standard_layout, __is_standard_layout(T))
METALLOID_TRAIT(is_aggregate, __is_aggregate(T))
METALLOID_TRAIT(is_polymorphic, __is_polymorphic(T))
METALLOID_TRAIT(is_final, __is_final(T))
METALLOID_TRAIT(is_default_constructible, __is_constructible(T))
METALLOID_TRAIT(is_copy_constructible, (__is_constructible(T, const T&)))

template <class From, class To>
struct is_convertible : bool_constant<__is_convertible(From, To)> {};
template <class From, class To>
inline constexpr bool is_convertible_v = __is_convertible(From, To);

template <class Base, class Derived>
struct is_base_of : bool_constant<__is_base_of(Base, Derived)> {};
template <class Base, class Derived>
inline constexpr bool is_base_of_v = __is_base_of(Base, Derived);

template <class T, class... Arguments>
struct is_constructible : bool_constant<__is_constructible(T, Arguments...)> {};
template <class T, class... Arguments>
inline constexpr bool is_constructible_v = __is_constructible(T, Arguments...);

template <class To, class From>
struct is_assignable : bool_constant<__is_assignable(To, From)> {};
template <class To, class From>
inline constexpr bool is_assignable_v = __is_assignable(To, From);

template <class T>
struct alignment_of : integral_constant<size_t, alignof(T)> {};
template <class T>
inline constexpr size_t alignment_of_v = alignof(T);

template <class T>
struct underlying_type {
  using type = __underlying_type(T);
};
template <class T>
using underlying_type_t = typename underlying_type<T>::type;

}  // namespace metal

#undef METALLOID_TRAIT

namespace metalloid {

template <int Bytes, bool Signed>
struct sized_integer;
template <>
struct sized_integer<1, true> {
  using type = signed char;
};
template <>
struct sized_integer<1, false> {
  using type = uchar;
};
template <>
struct sized_integer<2, true> {
  using type = short;
};
template <>
struct sized_integer<2, false> {
  using type = ushort;
};
template <>
struct sized_integer<4, true> {
  using type = int;
};
template <>
struct sized_integer<4, false> {
  using type = uint;
};
template <>
struct sized_integer<8, true> {
  using type = long;
};
template <>
struct sized_integer<8, false> {
  using type = ulong;
};

// The unsigned integer with the size of T: where a value travels as bare bits.
template <class T>
using bits_type = typename sized_integer<sizeof(T), false>::type;

// What T becomes when two scalar operands meet, as in C++, and half with bfloat gives float.
template <class A, class B>
struct common_scalar {
  using type = decltype(true ? A() : B());
};
template <class A>
struct common_scalar<A, A> {
  using type = A;
};
template <>
struct common_scalar<half, bfloat> {
  using type = float;
};
template <>
struct common_scalar<bfloat, half> {
  using type = float;
};

}  // namespace metalloid

namespace metal {

template <class T>
struct make_signed {
  using type = typename metalloid::sized_integer<sizeof(T), true>::type;
};
template <class T>
using make_signed_t = typename make_signed<T>::type;

template <class T>
struct make_unsigned {
  using type = metalloid::bits_type<T>;
};
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;

template <class... T>
struct common_type;
template <class T>
struct common_type<T> {
  using type = metalloid::bare<T>;
};
template <class A, class B>
struct common_type<A, B> : metalloid::common_scalar<metalloid::bare<A>, metalloid::bare<B>> {};
template <class A, class B, class... Rest>
struct common_type<A, B, Rest...> : common_type<typename common_type<A, B>::type, Rest...> {};
template <class... T>
using common_type_t = typename common_type<T...>::type;

// Returns T itself, not T&&: there is no rvalue reference into a named address space to name.
template <class T>
T declval();

template <class Function, class... Arguments>
struct invoke_result {
  using type = decltype(declval<Function>()(declval<Arguments>()...));
};
template <class Function, class... Arguments>
using invoke_result_t = typename invoke_result<Function, Arguments...>::type;
template <class Function>
struct result_of;
template <class Function, class... Arguments>
struct result_of<Function(Arguments...)> : invoke_result<Function, Arguments...> {};
template <class Call>
using result_of_t = typename result_of<Call>::type;

}  // namespace metal

namespace metalloid {

// A parameter of this type takes no part in template deduction, so that a scalar can convert to it.
template <class T>
struct identity {
  using type = T;
};
template <class T>
using no_deduction = typename identity<T>::type;

// enable_if over the bare kinds, as the type of a defaulted template parameter: `if_integer<T> = 0`.
template <class T>
using if_integer = metal::enable_if_t<is_integer<T>, int>;
template <class T>
using if_scalar = metal::enable_if_t<is_scalar<T>, int>;
template <class T>
using if_bfloat = metal::enable_if_t<metal::is_same_v<T, bfloat>, int>;

}  // namespace metalloid
