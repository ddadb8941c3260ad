#include <c10/metal/expm1f.h>
#include <c10/metal/special_math.h>
#include <c10/metal/igamma.h>
#include <metal_stdlib>
using namespace metal;

#define UNARY(NAME)                                                                            \
  kernel void NAME(                                                                            \
      device float* y, device const float* x, uint i [[thread_position_in_grid]]) {            \
    y[i] = c10::metal::NAME(x[i]);                                                             \
  }
#define BINARY(NAME)                                                                           \
  kernel void NAME(                                                                            \
      device float* y, device const float* a, device const float* b,                           \
      uint i [[thread_position_in_grid]]) {                                                    \
    y[i] = c10::metal::NAME(a[i], b[i]);                                                       \
  }
#define POLYNOMIAL(NAME)                                                                       \
  kernel void NAME(                                                                            \
      device float* y, device const float* x, constant int& n,                                 \
      uint i [[thread_position_in_grid]]) {                                                    \
    y[i] = c10::metal::NAME##_forward(x[i], n);                                                \
  }
#define FORWARD(NAME)                                                                          \
  kernel void NAME(                                                                            \
      device float* y, device const float* x, uint i [[thread_position_in_grid]]) {            \
    y[i] = c10::metal::NAME##_forward(x[i]);                                                   \
  }

UNARY(erf) UNARY(erfc) UNARY(erfcx) UNARY(erfinv) UNARY(expm1f) UNARY(log1p) UNARY(gamma)
UNARY(log_gamma) UNARY(digamma) UNARY(trigamma) UNARY(sinc) UNARY(spherical_bessel_j0) UNARY(entr)
UNARY(i0) UNARY(i0e) UNARY(i1) UNARY(i1e)
FORWARD(bessel_j0) FORWARD(bessel_j1) FORWARD(bessel_y0) FORWARD(bessel_y1)
FORWARD(modified_bessel_i0) FORWARD(modified_bessel_i1) FORWARD(modified_bessel_k0)
FORWARD(modified_bessel_k1) FORWARD(scaled_modified_bessel_k0) FORWARD(scaled_modified_bessel_k1)
BINARY(zeta) BINARY(xlogy) BINARY(xlog1py) BINARY(logaddexp) BINARY(logaddexp2) BINARY(igamma)
BINARY(igammac) BINARY(hypot) BINARY(pow) BINARY(remainder) BINARY(floor_divide)
POLYNOMIAL(chebyshev_polynomial_t) POLYNOMIAL(chebyshev_polynomial_u)
POLYNOMIAL(chebyshev_polynomial_v) POLYNOMIAL(chebyshev_polynomial_w)
POLYNOMIAL(shifted_chebyshev_polynomial_t) POLYNOMIAL(shifted_chebyshev_polynomial_u)
POLYNOMIAL(shifted_chebyshev_polynomial_v) POLYNOMIAL(shifted_chebyshev_polynomial_w)
POLYNOMIAL(hermite_polynomial_h) POLYNOMIAL(hermite_polynomial_he)

kernel void polygamma(
    device float* y, device const float* x, constant long& order,
    uint i [[thread_position_in_grid]]) {
  y[i] = c10::metal::polygamma(order, x[i]);
}
