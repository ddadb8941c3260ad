// matmul2d of Metal Performance Primitives: products of matrices by the threads of an execution
// scope, of tensors in memory and of cooperative tensors.
#pragma once

#include "tensor_entry.h"
#include "tensor_products.h"

namespace mpp {
namespace tensor_ops {

// As a descriptor's k: the operands say how long it is. So do dynamic_extent and 0.
template <class T>
inline constexpr T dynamic_length_v = metal::numeric_limits<T>::max();

struct matmul2d_descriptor {
  enum class mode { multiply, multiply_accumulate };

  int m, n, k;
  bool transpose_left, transpose_right;
  bool relaxed_precision;  // changes nothing here
  mode matmul_mode;

  constexpr matmul2d_descriptor(int m, int n, int k = int(metal::dynamic_extent),
                                bool transpose_left = false, bool transpose_right = false,
                                bool relaxed_precision = false, mode matmul_mode = mode::multiply)
      : m(m), n(n), k(k), transpose_left(transpose_left), transpose_right(transpose_right),
        relaxed_precision(relaxed_precision), matmul_mode(matmul_mode) {}

  constexpr bool has_k() const { return k > 0 && k != dynamic_length_v<int>; }
  constexpr bool accumulates() const { return matmul_mode == mode::multiply_accumulate; }
};

}  // namespace tensor_ops
}  // namespace mpp

namespace metalloid {

template <class T>
inline constexpr bool is_matrix_operand = metal::is_tensor_v<T> || metal::is_cooperative_tensor_v<T>;

template <class T>
inline constexpr bool is_factor_element =
    metal::is_same_v<T, float> || metal::is_same_v<T, half> || metal::is_same_v<T, bfloat> ||
    (is_integer<T> && sizeof(T) == 1);

// Where the elements of a factor and of a product lie. Simdgroups that work together share a
// product, and each has a copy of a factor.
template <class Scope, int rows, int columns>
struct operand_layout;
template <int rows, int columns>
struct operand_layout<metal::execution_thread, rows, columns> {
  using factor = thread_layout<rows, columns>;
  using product = factor;
};
template <size_t simdgroups, int rows, int columns>
struct operand_layout<metal::execution_simdgroups<simdgroups>, rows, columns> {
  using factor = fragment_layout<rows, columns, 1>;
  using product = fragment_layout<rows, columns, int(simdgroups)>;
};

template <class Element, class Index, class Layout>
using cooperative_matrix =
    metal::cooperative_tensor<Element, metal::extents<Index, Layout::columns, Layout::rows>, Layout>;

// Stores element i of a product in memory or in the thread; does nothing for an element it lacks.
template <class Layout, class Destination>
METALLOID_INLINE bool has_element(const Destination& destination, int i) {
  if (!Layout::is_valid(i)) return false;
  if constexpr (metal::is_tensor_v<Destination>)
    return Layout::row(i) < int(destination.get_extent(1)) &&
           Layout::column(i) < int(destination.get_extent(0));
  return true;
}
template <class Layout, class Destination>
METALLOID_INLINE auto& element_of(Destination& destination, int i) {
  if constexpr (metal::is_tensor_v<Destination>)
    return destination[Layout::column(i), Layout::row(i)];
  else
    return destination[uint(i)];
}

// An element of a factor of one thread.
template <class Operand>
METALLOID_INLINE auto own_element(const Operand& operand, int row, int column) {
  if constexpr (metal::is_tensor_v<Operand>) return element_or_zero(operand, row, column);
  else return operand[uint(row * Operand::layout::columns + column)];
}

template <mpp::tensor_ops::matmul2d_descriptor op, class Layout, class Left, class Right,
          class Destination>
METALLOID_INLINE void multiply_in_thread(const Left& left, const Right& right,
                                         Destination& destination, int inner) {
  using sum_type = accumulator_t<metal::remove_cv_t<Destination>>;
  using value = typename metal::remove_cv_t<Destination>::value_type;
  for (int i = 0; i < Layout::capacity; ++i) {
    if (!has_element<Layout>(destination, i)) continue;
    const int m = Layout::row(i), n = Layout::column(i);
    auto& element = element_of<Layout>(destination, i);
    sum_type sum = op.accumulates() ? sum_type(element) : sum_type(0);
    for (int k = 0; k < inner; ++k)
      sum += sum_type(op.transpose_left ? own_element(left, k, m) : own_element(left, m, k)) *
             sum_type(op.transpose_right ? own_element(right, n, k) : own_element(right, k, n));
    element = value(sum);
  }
}

template <mpp::tensor_ops::matmul2d_descriptor op, class Layout, class Left, class Right,
          class Destination>
METALLOID_INLINE void multiply_in_simdgroups(const Left& left, const Right& right,
                                             Destination& destination, int inner) {
  using sum_type = accumulator_t<metal::remove_cv_t<Destination>>;
  using value = typename metal::remove_cv_t<Destination>::value_type;
#pragma clang loop unroll(full)
  for (int i = 0; i < Layout::capacity; i += 8) {
    const int fragment = Layout::fragment(i);
    if (fragment >= Layout::fragments) break;  // for the whole simdgroup
    sum_type sums[8] = {};
    if constexpr (op.accumulates()) {
      for (int j = 0; j < 8; ++j)
        if (has_element<Layout>(destination, i + j))
          sums[j] = sum_type(element_of<Layout>(destination, i + j));
    }
    add_products<op.transpose_left, op.transpose_right>(
        sums, left, right, fragment / Layout::across * 16, fragment % Layout::across * 16, inner);
    for (int j = 0; j < 8; ++j)
      if (has_element<Layout>(destination, i + j))
        element_of<Layout>(destination, i + j) = value(sums[j]);
  }
}

}  // namespace metalloid

namespace mpp {
namespace tensor_ops {

template <matmul2d_descriptor Descriptor, class Scope, class... Options>
class matmul2d {
  static constexpr int m = Descriptor.m, n = Descriptor.n, k = Descriptor.has_k() ? Descriptor.k : 1;
  using left_layout =
      typename metalloid::operand_layout<Scope, Descriptor.transpose_left ? k : m,
                                         Descriptor.transpose_left ? m : k>::factor;
  using right_layout =
      typename metalloid::operand_layout<Scope, Descriptor.transpose_right ? n : k,
                                         Descriptor.transpose_right ? k : n>::factor;
  using product_layout = typename metalloid::operand_layout<Scope, m, n>::product;

 public:
  static constexpr matmul2d_descriptor descriptor = Descriptor;
  using scope = Scope;

  template <class LeftElement, class RightElement, class Element, class Index = int>
  using cooperative_tensor_left_input_t =
      metalloid::cooperative_matrix<LeftElement, Index, left_layout>;
  template <class LeftElement, class RightElement, class Element, class Index = int>
  using cooperative_tensor_right_input_t =
      metalloid::cooperative_matrix<RightElement, Index, right_layout>;
  template <class Left, class Right, class Element, class Index = int>
  using cooperative_tensor_destination_t =
      metalloid::cooperative_matrix<Element, Index, product_layout>;

  template <class LeftElement, class RightElement, class Element, class Index = int>
  METALLOID_INLINE auto get_left_input_cooperative_tensor() const {
    static_assert(Descriptor.has_k(), "a cooperative tensor as input needs a descriptor with a k");
    return cooperative_tensor_left_input_t<LeftElement, RightElement, Element, Index>();
  }
  template <class LeftElement, class RightElement, class Element, class Index = int>
  METALLOID_INLINE auto get_right_input_cooperative_tensor() const {
    static_assert(Descriptor.has_k(), "a cooperative tensor as input needs a descriptor with a k");
    return cooperative_tensor_right_input_t<LeftElement, RightElement, Element, Index>();
  }
  template <class Left, class Right, class Element, class Index = int>
  METALLOID_INLINE auto get_destination_cooperative_tensor() const {
    return cooperative_tensor_destination_t<Left, Right, Element, Index>();
  }

  // The product of another operation as a factor of this one: if threads hold the same elements.
  template <class LeftElement, class RightElement, class Element, class T, class E, class L>
  METALLOID_INLINE constexpr bool is_compatible_as_left_input(
      const metal::cooperative_tensor<T, E, L>&) const {
    return metal::is_same_v<L, left_layout>;
  }
  template <class LeftElement, class RightElement, class Element, class T, class E, class L>
  METALLOID_INLINE constexpr bool is_compatible_as_right_input(
      const metal::cooperative_tensor<T, E, L>&) const {
    return metal::is_same_v<L, right_layout>;
  }
  template <class LeftElement, class RightElement, class Element, class Index = int, class T,
            class E, class L>
  METALLOID_INLINE auto get_left_input_cooperative_tensor(
      const metal::cooperative_tensor<T, E, L>& source) const {
    auto input = get_left_input_cooperative_tensor<LeftElement, RightElement, Element, Index>();
    convert(source, input);
    return input;
  }
  template <class LeftElement, class RightElement, class Element, class Index = int, class T,
            class E, class L>
  METALLOID_INLINE auto get_right_input_cooperative_tensor(
      const metal::cooperative_tensor<T, E, L>& source) const {
    auto input = get_right_input_cooperative_tensor<LeftElement, RightElement, Element, Index>();
    convert(source, input);
    return input;
  }

  // destination = left right, or destination + left right: all threads of the scope together.
  template <class Left, class Right, class Destination>
  METALLOID_INLINE void run(const Left& left, const Right& right, Destination&& destination) const {
    using product = metal::remove_cv_t<metal::remove_reference_t<Destination>>;
    static_assert(metalloid::is_matrix_operand<Left> && metalloid::is_matrix_operand<Right> &&
                      metalloid::is_matrix_operand<product>,
                  "matmul2d multiplies tensors and cooperative tensors");
    static_assert(Left::rank() == 2 && Right::rank() == 2 && product::rank() == 2,
                  "matmul2d multiplies tensors of rank 2");
    static_assert(metalloid::is_factor_element<typename Left::value_type> &&
                      metalloid::is_factor_element<typename Right::value_type>,
                  "matmul2d multiplies elements of half, bfloat, float, char and uchar");
    const int inner = length_of(left, right);
    if constexpr (metal::is_same_v<Scope, metal::execution_thread>)
      metalloid::multiply_in_thread<Descriptor, product_layout>(left, right, destination, inner);
    else
      metalloid::multiply_in_simdgroups<Descriptor, product_layout>(left, right, destination,
                                                                    inner);
  }

 private:
  template <class Left, class Right>
  METALLOID_INLINE static int length_of(const Left& left, const Right& right) {
    if constexpr (Descriptor.has_k()) return Descriptor.k;
    else return int(left.get_extent(Descriptor.transpose_left ? 1 : 0));
  }

  // What is not compatible is left as it is: a kernel asks first, and may contain both branches.
  template <class Source, class Input>
  METALLOID_INLINE static void convert(const Source& source, Input& input) {
    if constexpr (metal::is_same_v<typename Source::layout, typename Input::layout>)
      for (uint i = 0; i < Input::get_capacity(); ++i)
        input[i] = typename Input::value_type(source[i]);
  }
};

}  // namespace tensor_ops
}  // namespace mpp
