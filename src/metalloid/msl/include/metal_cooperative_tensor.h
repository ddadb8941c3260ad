// Matrices whose elements the threads of an operation hold together (MSL specification 4,
// <metal_cooperative_tensor>), and which threads take part in an operation.
#pragma once

#include "metal_simdgroup_matrix.h"
#include "metal_tensor.h"

namespace metal {

template <size_t Size>
struct execution_threads {
  static_assert(Size == 1, "an operation is executed by one thread or by simdgroups");
  static constexpr size_t static_size = Size;
  METALLOID_INLINE static constexpr uint size() { return Size; }
};
template <size_t Size>
struct execution_simdgroups {
  static_assert(Size > 0, "an operation needs a simdgroup at least");
  static constexpr size_t static_size = Size;
  METALLOID_INLINE static constexpr uint size() { return Size; }
};
using execution_thread = execution_threads<1>;
using execution_simdgroup = execution_simdgroups<1>;

}  // namespace metal

namespace metalloid {

// ---- layouts: which element of a matrix is a thread's element i ---------------------------------

// One thread holds the whole matrix.
template <int Rows, int Columns>
struct thread_layout {
  static constexpr int rows = Rows, columns = Columns, capacity = Rows * Columns;

  METALLOID_INLINE static int row(int i) { return i / Columns; }
  METALLOID_INLINE static int column(int i) { return i % Columns; }
  METALLOID_INLINE static bool is_valid(int) { return true; }
};

// The matrix is cut into fragments of 16 x 16, row by row, which go round the simdgroups that share
// it. In a fragment a lane holds four neighbours of a row, and those eight rows below: the layout of
// Apple's GPUs, which kernels that compute coordinates themselves (MLX's) rely on.
template <int Rows, int Columns, int Holders>
struct fragment_layout {
  static constexpr int rows = Rows, columns = Columns;
  static constexpr int across = (Columns + 15) / 16, fragments = (Rows + 15) / 16 * across;
  static constexpr int own_fragments = (fragments + Holders - 1) / Holders;
  static constexpr int capacity = 8 * own_fragments;

  METALLOID_INLINE static int fragment(int i) {
    return Holders == 1 ? i / 8 : i / 8 * Holders + int(__msl_simdgroup_index());
  }
  METALLOID_INLINE static int row(int i) {
    return fragment(i) / across * 16 + i / 4 % 2 * 8 + int(matrix_row(__msl_simd_lane()));
  }
  METALLOID_INLINE static int column(int i) {
    return fragment(i) % across * 16 + int(2 * matrix_column(__msl_simd_lane())) + i % 4;
  }
  METALLOID_INLINE static bool is_valid(int i) {
    const bool is_full = Rows % 16 == 0 && Columns % 16 == 0 && fragments % Holders == 0;
    return is_full || (row(i) < Rows && column(i) < Columns);
  }
};

// An element of a tensor of two dimensions; zero outside of it.
template <class Tensor>
METALLOID_INLINE auto element_or_zero(const Tensor& tensor, int row, int column) ->
    typename Tensor::value_type {
  const bool inside = row < int(tensor.get_extent(1)) && column < int(tensor.get_extent(0));
  if (!inside) return typename Tensor::value_type(0);
  return tensor[column, row];
}

}  // namespace metalloid

namespace metal {

template <class Element, class Extents, class Layout>
class cooperative_tensor {
 public:
  using element_type = Element;
  using value_type = Element;
  using extents_type = Extents;
  using index_type = typename Extents::index_type;
  using layout = Layout;

  template <class Owner>
  class position {
   public:
    METALLOID_INLINE position(Owner& owner, uint index) : owner(&owner), index(index) {}
    METALLOID_INLINE auto& operator*() const { return (*owner)[index]; }
    METALLOID_INLINE position& operator++() {
      ++index;
      return *this;
    }
    METALLOID_INLINE position operator++(int) {
      position before = *this;
      ++index;
      return before;
    }
    METALLOID_INLINE bool operator==(const position& other) const { return index == other.index; }
    METALLOID_INLINE auto get_multidimensional_index() const {
      return owner->get_multidimensional_index(index);
    }
    METALLOID_INLINE bool is_valid_element() const { return owner->is_valid_element(index); }

   private:
    Owner* owner;
    uint index;
  };
  using iterator = position<cooperative_tensor>;
  using const_iterator = position<const cooperative_tensor>;

  METALLOID_INLINE static constexpr size_t rank() { return Extents::rank(); }
  METALLOID_INLINE static constexpr size_t static_extent(size_t dimension) {
    return Extents::static_extent(dimension);
  }
  // How many elements a thread has room for; not all need be elements of the matrix.
  METALLOID_INLINE static constexpr ushort get_capacity() { return ushort(Layout::capacity); }
  METALLOID_INLINE static bool is_valid_element(uint i) { return Layout::is_valid(int(i)); }
  METALLOID_INLINE static bool get_mask(uint i) { return is_valid_element(i); }
  // (column, row) in the matrix.
  METALLOID_INLINE static array<index_type, 2> get_multidimensional_index(uint i) {
    return {index_type(Layout::column(int(i))), index_type(Layout::row(int(i)))};
  }

  METALLOID_INLINE Element& operator[](uint i) { return elements[i]; }
  METALLOID_INLINE const Element& operator[](uint i) const { return elements[i]; }
  METALLOID_INLINE iterator begin() { return {*this, 0}; }
  METALLOID_INLINE iterator end() { return {*this, get_capacity()}; }
  METALLOID_INLINE const_iterator begin() const { return {*this, 0}; }
  METALLOID_INLINE const_iterator end() const { return {*this, get_capacity()}; }

  // What lies outside of the tensor is zero.
  template <class Tensor>
  METALLOID_INLINE void load(const Tensor& tensor) {
    static_assert(is_tensor_v<Tensor> && Tensor::rank() == 2, "load() reads a tensor of rank 2");
    for (uint i = 0; i < Layout::capacity; ++i)
      if (is_valid_element(i))
        elements[i] =
            Element(metalloid::element_or_zero(tensor, Layout::row(int(i)), Layout::column(int(i))));
  }
  // What lies outside of the tensor is not stored.
  template <class Tensor>
  METALLOID_INLINE void store(const Tensor& tensor) const {
    static_assert(is_tensor_v<Tensor> && Tensor::rank() == 2, "store() writes a tensor of rank 2");
    for (uint i = 0; i < Layout::capacity; ++i) {
      const int row = Layout::row(int(i)), column = Layout::column(int(i));
      if (is_valid_element(i) && row < int(tensor.get_extent(1)) &&
          column < int(tensor.get_extent(0)))
        tensor[column, row] = typename Tensor::value_type(elements[i]);
    }
  }

 private:
  // Published kernels accumulate into what they have not set, and find zeros there.
  Element elements[Layout::capacity] = {};
};

template <class T>
struct is_cooperative_tensor : false_type {};
template <class T, class E, class L>
struct is_cooperative_tensor<cooperative_tensor<T, E, L>> : true_type {};
template <class T>
inline constexpr bool is_cooperative_tensor_v = is_cooperative_tensor<remove_cv_t<T>>::value;

}  // namespace metal
