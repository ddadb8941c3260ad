// Tensors as parameters of kernels: what the host binds is a tensor_handle.
#pragma once

#include "kernel_entry.h"
#include "metal_tensor.h"

namespace metalloid {

template <class Element, class Extents, class... Tags>
inline constexpr unsigned
    tensor_rank<metal::tensor<Element, Extents, metal::tensor_handle, Tags...>> = Extents::rank();

// Its word is the address of these numbers: that of the elements, the extents, and the strides in
// elements; runtime/tensor_slot.py writes them.
template <class Element, class Extents, class... Tags>
struct memory_as<metal::tensor<Element, Extents, metal::tensor_handle, Tags...>> {
  static_assert(Extents::rank_dynamic() == Extents::rank(),
                "the extents of a tensor that a launch binds are dynamic: dextents<int, rank>");
  using tensor = metal::tensor<Element, Extents, metal::tensor_handle, Tags...>;
  using numbers = metal::array<long, Extents::rank()>;

  static METALLOID_INLINE tensor from(void* word) {
    const constant long* const numbers_ = (const constant long*)word;
    numbers sizes, strides;
    for (size_t i = 0; i < Extents::rank(); ++i) {
      sizes[i] = numbers_[1 + i];
      strides[i] = numbers_[1 + Extents::rank() + i];
    }
    return tensor((Element*)numbers_[0], Extents(sizes), strides);
  }
};

}  // namespace metalloid
