#include <c10/metal/indexing.h>
#include <c10/metal/special_math.h>
#include <metal_stdlib>
using namespace metal;
using namespace c10::metal;

DEFINE_UNARY_FLOATING_FUNCTOR(erf);

struct neg_functor {
  template <typename T>
  inline T operator()(const T x) {
    return T(-x);
  }
};

struct add_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return static_cast<T>(a + b);
  }
};

struct div_floor_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return floor_divide(a, b);
  }
};

DEFINE_BINARY_COMPARISON_FUNCTOR(lt, <);

struct add_alpha_functor {
  template <typename T>
  inline T operator()(const T a, const T b, const T alpha) {
    return static_cast<T>(a + mul(alpha, b));
  }
};

struct scale_functor {
  template <typename T, typename U>
  inline T operator()(const T a, const U alpha) {
    return static_cast<T>(mul(a, T(alpha)));
  }
};

REGISTER_UNARY_OP(erf, float, float);
REGISTER_UNARY_OP(erf, half, half);
REGISTER_UNARY_OP(erf, bfloat, bfloat);
REGISTER_UNARY_OP(erf, int, float);
REGISTER_UNARY_OP(neg, float2, float2);
REGISTER_UNARY_OP(neg, long, long);
REGISTER_OPMATH_BINARY_OP(add, float, float);
REGISTER_OPMATH_BINARY_OP(add, half, half);
REGISTER_OPMATH_BINARY_OP(add, bfloat, bfloat);
REGISTER_BINARY_OP(add, float2, float2);
REGISTER_BINARY_OP(add, long, long);
REGISTER_BINARY_OP(add, uchar, uchar);
REGISTER_BINARY_OP(div_floor, int, int);
REGISTER_BINARY_OP(div_floor, float, float);
REGISTER_BINARY_OP(lt, float, bool);
REGISTER_BINARY_CASTOUT_OP(lt, float, bool);
REGISTER_BINARY_ALPHA_OP(add_alpha, float, float, float);
REGISTER_BINARY_ALPHA_OP(add_alpha, long, long, long);
REGISTER_UNARY_ALPHA_OP(scale, float, float, float);
