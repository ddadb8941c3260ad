#include <c10/metal/atomic.h>
#include <c10/metal/error.h>
#include <metal_stdlib>
using namespace metal;

template <typename T>
T larger(T a, T b) {
  return a < b ? b : a;
}

template <typename T>
kernel void scatter_add(
    device typename c10::metal::AtomicType<T>::type* out, device const T* x,
    device const int* at, uint i [[thread_position_in_grid]]) {
  c10::metal::AtomicType<T>::atomic_add(out, at[i], x[i]);
}

template <typename T>
kernel void scatter_max(
    device typename c10::metal::AtomicType<T>::type* out, device const T* x,
    device const int* at, uint i [[thread_position_in_grid]]) {
  c10::metal::AtomicType<T>::atomic_binary_op(out, at[i], x[i], larger<T>);
}

#define ADD(T) \
  template [[host_name("add_" #T)]] kernel void scatter_add<T>( \
      device typename c10::metal::AtomicType<T>::type*, device const T*, device const int*, uint);
#define MAX(T) \
  template [[host_name("max_" #T)]] kernel void scatter_max<T>( \
      device typename c10::metal::AtomicType<T>::type*, device const T*, device const int*, uint);
ADD(float) ADD(int) ADD(half) ADD(short) ADD(char) ADD(uchar) ADD(bfloat) ADD(bool) ADD(half2)
ADD(long) ADD(float2)
MAX(float) MAX(int) MAX(half) MAX(short) MAX(char) MAX(uchar) MAX(bfloat) MAX(bool)

kernel void complain(
    device c10::metal::ErrorMessages* errors, device const int* x,
    uint i [[thread_position_in_grid]]) {
  if (x[i] < 0) {
    TORCH_REPORT_ERROR(errors, "element ", long(i), " is ", long(x[i]));
  }
}
