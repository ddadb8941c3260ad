// The headers that define numbers and functions of them, used from kernels of our own.
#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/cexpf.h"
#include "mlx/backend/metal/kernels/erf.h"
#include "mlx/backend/metal/kernels/fp4.h"
#include "mlx/backend/metal/kernels/fp8.h"

kernel void complex_exponential(
    device const complex64_t* x,
    device complex64_t* y,
    uint i [[thread_position_in_grid]]) {
  y[i] = cexpf(x[i]);
}

kernel void error_functions(
    device const float* x,
    device float* erf_of_x,
    device float* erfinv_of_x,
    device float* expm1_of_x,
    uint i [[thread_position_in_grid]]) {
  erf_of_x[i] = erf(x[i]);
  erfinv_of_x[i] = erfinv(x[i]);
  expm1_of_x[i] = expm1f(x[i]);
}

template <typename Narrow, typename T>
kernel void round_trip(
    device const float* x,
    device uint8_t* bits,
    device T* y,
    uint i [[thread_position_in_grid]]) {
  Narrow narrow(x[i]);
  bits[i] = narrow.bits;
  y[i] = static_cast<T>(narrow);
}

// Each function of the bfloat overloads that bf16_math.h adds to namespace metal.
kernel void bfloat_functions(
    device const bfloat16_t* x,
    device bfloat16_t* y,
    uint i [[thread_position_in_grid]]) {
  bfloat16_t v = metal::abs(x[i]) + bfloat16_t(1.0f);
  v += metal::exp(x[i]) + metal::precise::log(v) + metal::fast::sin(v) + metal::rsqrt(v);
  v += metal::max(v, x[i]) + metal::fma(v, v, x[i]) + metal::pow(v, v) + metal::atan2(v, x[i]);
  y[i] = metal::simd_sum(v) + metal::simd_shuffle_xor(v, 1) + metal::simd_prefix_inclusive_sum(v);
}

instantiate_kernel("fp4_float", round_trip, fp4_e2m1, float)
instantiate_kernel("fp4_bfloat", round_trip, fp4_e2m1, bfloat16_t)
instantiate_kernel("fp8_e4m3_half", round_trip, fp8_e4m3, float16_t)
instantiate_kernel("fp8_e4m3_float", round_trip, fp8_e4m3, float)
