// Views of memory as arrays of several dimensions (MSL specification 4, <metal_tensor>).
//
// Dimension 0 is the innermost: a matrix has its columns there and its rows in dimension 1.
#pragma once

#include "metal_array.h"

namespace metal {

inline constexpr size_t dynamic_extent = size_t(-1);

// Sizes of dimensions, each known to the compiler or dynamic_extent.
template <class Index, size_t... Sizes>
class extents {
 public:
  using index_type = Index;
  using size_type = size_t;
  using rank_type = size_t;

  METALLOID_INLINE static constexpr size_t rank() { return sizeof...(Sizes); }
  METALLOID_INLINE static constexpr size_t rank_dynamic() {
    return (size_t(Sizes == dynamic_extent) + ... + 0);
  }
  METALLOID_INLINE static constexpr size_t static_extent(size_t dimension) {
    const size_t all[] = {Sizes..., 0};
    return all[dimension];
  }

  constexpr extents() = default;

  // From the sizes of all dimensions, or of the dynamic ones.
  template <class... I,
            class = enable_if_t<(sizeof...(I) == rank() || sizeof...(I) == rank_dynamic()) &&
                                (is_convertible_v<I, Index> && ...)>>
  METALLOID_INLINE constexpr extents(I... given) {
    assign(array<Index, sizeof...(I)>{Index(given)...});
  }
  template <class I, size_t N, class = enable_if_t<N == rank() || N == rank_dynamic()>>
  METALLOID_INLINE constexpr extents(const array<I, N>& given) {
    assign(given);
  }

  METALLOID_INLINE constexpr Index extent(size_t dimension) const {
    return static_extent(dimension) == dynamic_extent ? sizes[dimension]
                                                      : Index(static_extent(dimension));
  }

 private:
  template <class I, size_t N>
  METALLOID_INLINE constexpr void assign(const array<I, N>& given) {
    size_t next = 0;
    for (size_t i = 0; i < rank(); ++i)
      if (N == rank() || static_extent(i) == dynamic_extent) sizes[i] = Index(given[next++]);
  }

  Index sizes[sizeof...(Sizes)] = {Index(Sizes == dynamic_extent ? 0 : Sizes)...};
};

}  // namespace metal

namespace metalloid {

template <class Index, size_t rank, size_t... sizes>
struct all_dynamic : all_dynamic<Index, rank - 1, metal::dynamic_extent, sizes...> {};
template <class Index, size_t... sizes>
struct all_dynamic<Index, 0, sizes...> {
  using type = metal::extents<Index, sizes...>;
};

}  // namespace metalloid

namespace metal {

template <class Index, size_t Rank>
using dextents = typename metalloid::all_dynamic<Index, Rank>::type;

// How a tensor knows its memory: bound by the host, made by the kernel; and whether it is a part.
struct tensor_handle {};
struct tensor_inline {};
struct tensor_offset {};

template <class Element, class Extents, class Descriptor = tensor_handle, class... Tags>
class tensor {
  static_assert(is_same_v<Descriptor, tensor_handle> || is_same_v<Descriptor, tensor_inline>,
                "a tensor is a tensor_handle or a tensor_inline");

 public:
  using element_type = Element;
  using value_type = remove_cv_t<remove_addrspace_t<remove_cv_t<Element>>>;
  using extents_type = Extents;
  using index_type = typename Extents::index_type;
  using size_type = size_t;
  using rank_type = size_t;
  using data_handle_type = Element*;

  METALLOID_INLINE static constexpr size_t rank() { return Extents::rank(); }
  METALLOID_INLINE static constexpr size_t get_rank() { return rank(); }
  METALLOID_INLINE static constexpr size_t static_extent(size_t dimension) {
    return Extents::static_extent(dimension);
  }

  tensor() = default;

  // Elements lie side by side, dimension 0 first.
  METALLOID_INLINE tensor(Element* data, const Extents& sizes) : data(data), sizes(sizes) {
    long stride = 1;
    for (size_t i = 0; i < rank(); ++i) {
      strides[i] = stride;
      stride *= sizes.extent(i);
    }
  }
  // Strides are counted in elements.
  template <class I>
  METALLOID_INLINE tensor(Element* data, const Extents& sizes,
                          const array<I, Extents::rank()>& given)
      : data(data), sizes(sizes) {
    for (size_t i = 0; i < rank(); ++i) strides[i] = long(given[i]);
  }

  METALLOID_INLINE const Extents& get_extents() const { return sizes; }
  METALLOID_INLINE index_type get_extent(size_t dimension) const { return sizes.extent(dimension); }
  template <size_t dimension>
  METALLOID_INLINE index_type get_extent() const {
    return sizes.extent(dimension);
  }
  METALLOID_INLINE index_type get_stride(size_t dimension) const {
    return index_type(strides[dimension]);
  }
  METALLOID_INLINE Element* data_handle() const { return data; }

  template <class... I, class = enable_if_t<sizeof...(I) == Extents::rank()>>
  METALLOID_INLINE Element& operator[](I... position) const {
    return data[offset(array<long, Extents::rank()>{long(position)...})];
  }
  template <class I>
  METALLOID_INLINE Element& operator[](const array<I, Extents::rank()>& position) const {
    return data[offset(position)];
  }

  // The part that begins at a position: of the sizes given, else what is left of the tensor.
  template <size_t... Sizes, class... I>
  METALLOID_INLINE auto slice(I... first) const {
    static_assert(sizeof...(I) == rank(), "slice() expects a position in every dimension");
    static_assert(sizeof...(Sizes) == 0 || sizeof...(Sizes) == rank(),
                  "slice<...>() expects a size for every dimension, or none");
    const array<long, rank()> origin = {long(first)...};
    if constexpr (sizeof...(Sizes) == 0) return part<dextents<index_type, rank()>>(origin);
    else return part<extents<index_type, Sizes...>>(origin);
  }
  template <size_t... Sizes, class... I>
  METALLOID_INLINE auto static_slice(I... first) const {
    return slice<Sizes...>(first...);
  }

 private:
  template <class I>
  METALLOID_INLINE long offset(const array<I, Extents::rank()>& position) const {
    long total = 0;
    for (size_t i = 0; i < rank(); ++i) total += long(position[i]) * strides[i];
    return total;
  }

  template <class Part>
  METALLOID_INLINE auto part(const array<long, Extents::rank()>& origin) const {
    array<long, Extents::rank()> left, own_strides;
    for (size_t i = 0; i < rank(); ++i) {
      const long rest = long(sizes.extent(i)) - origin[i];
      left[i] = Part::static_extent(i) == dynamic_extent ? (rest > 0 ? rest : 0)
                                                         : long(Part::static_extent(i));
      own_strides[i] = strides[i];
    }
    return tensor<Element, Part, tensor_inline>(data + offset(origin), Part(left), own_strides);
  }

  Element* data;
  Extents sizes;
  long strides[Extents::rank()];
};

template <class T, class I, size_t... Sizes>
tensor(T*, extents<I, Sizes...>) -> tensor<T, extents<I, Sizes...>, tensor_inline>;
template <class T, class I, size_t... Sizes, class S, size_t N>
tensor(T*, extents<I, Sizes...>, array<S, N>) -> tensor<T, extents<I, Sizes...>, tensor_inline>;

template <class T>
struct is_tensor : false_type {};
template <class T, class E, class D, class... Tags>
struct is_tensor<tensor<T, E, D, Tags...>> : true_type {};
template <class T>
inline constexpr bool is_tensor_v = is_tensor<remove_cv_t<T>>::value;

}  // namespace metal
