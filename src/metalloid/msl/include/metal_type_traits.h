// Type traits (MSL specification, "Type Traits", and those of C++ that Metal keeps in `metal::`).
//
// Not defined on purpose: void_t and is_empty, which published Metal code adds to namespace metal.
#pragma once

#include "scalar_kinds.h"
#include "type_basics.h"

// A trait and its `_v` form, from an expression over T.
#define METALLOID_TRAIT(name, expression) \
  template <class T> \
  struct name : bool_constant<(expression)> {}; \
  template <class T> \
  inline constexpr bool name##_v = (expression);

namespace metal {

METALLOID_TRAIT(is_integral, metalloid::is_integer<metalloid::unqualified<T>>)
METALLOID_TRAIT(is_floating_point, metalloid::is_float<metalloid::unqualified<T>>)
METALLOID_TRAIT(is_arithmetic, metalloid::is_scalar<metalloid::unqualified<T>>)
METALLOID_TRAIT(is_unsigned, metalloid::is_unsigned_integer<metalloid::unqualified<T>>())
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
