// What the kernels of builders (ElementwiseKernel, ReductionKernel, ScanKernel) share. Plain MSL.
#include <metal_stdlib>
using namespace metal;

// Where element `i` of an array lies, in elements. `strides` has a number for each axis, and the
// index of the first element after them.
template <int axes>
METAL_FUNC long element_at(uint i, constant uint *shape, constant long *strides) {
  long at = strides[axes];
  for (int axis = axes - 1; axis > 0; --axis) {
    at += strides[axis] * long(i % shape[axis]);
    i /= shape[axis];
  }
  return axes == 0 ? at : at + strides[0] * long(i);
}
