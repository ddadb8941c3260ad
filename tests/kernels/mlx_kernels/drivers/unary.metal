#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/unary_ops.h"
#include "mlx/backend/metal/kernels/unary.h"

#define instantiate_unary(op, name, type, result)                         \
  instantiate_kernel("unary_v_" #op "_" #name, unary_v, type, result, op) \

#define instantiate_forms(op, name, type)                                       \
  instantiate_kernel("unary_v2_" #op "_" #name, unary_v2, type, type, op)       \
  instantiate_kernel("unary_g_" #op "_" #name, unary_g, type, type, op, 1, int) \
  instantiate_kernel("unary_g_n4_" #op "_" #name, unary_g, type, type, op, 4, int64_t)

#define instantiate_float(op) instantiate_unary(op, float, float, float)

instantiate_float(Abs)
instantiate_float(ArcCos)
instantiate_float(ArcCosh)
instantiate_float(ArcSin)
instantiate_float(ArcSinh)
instantiate_float(ArcTan)
instantiate_float(ArcTanh)
instantiate_float(Ceil)
instantiate_float(Cos)
instantiate_float(Cosh)
instantiate_float(Erf)
instantiate_float(ErfInv)
instantiate_float(Exp)
instantiate_float(Expm1)
instantiate_float(Floor)
instantiate_float(Log)
instantiate_float(Log10)
instantiate_float(Log1p)
instantiate_float(Log2)
instantiate_float(Negative)
instantiate_float(Round)
instantiate_float(Rsqrt)
instantiate_float(Sigmoid)
instantiate_float(Sign)
instantiate_float(Sin)
instantiate_float(Sinh)
instantiate_float(Sqrt)
instantiate_float(Square)
instantiate_float(Tan)
instantiate_float(Tanh)

#define instantiate_16_bits(op)           \
  instantiate_unary(op, half, half, half) \
  instantiate_unary(op, bfloat, bfloat16_t, bfloat16_t)

instantiate_16_bits(Exp)
instantiate_16_bits(Log)
instantiate_16_bits(Sigmoid)
instantiate_16_bits(Sqrt)
instantiate_16_bits(Tanh)

#define instantiate_complex(op) instantiate_unary(op, complex, complex64_t, complex64_t)

instantiate_complex(ArcCos)
instantiate_complex(Conjugate)
instantiate_complex(Exp)
instantiate_complex(Log)
instantiate_complex(Sqrt)
instantiate_complex(Tanh)
instantiate_unary(Abs, int64, int64_t, int64_t)
instantiate_unary(BitwiseInvert, int, int, int)
instantiate_unary(LogicalNot, bool, bool, bool)
instantiate_unary(Real, complex, complex64_t, float)
instantiate_unary(Imag, complex, complex64_t, float)
instantiate_unary(ToFP8, float, float, uint8_t)
instantiate_unary(FromFP8, uchar, uint8_t, float)

instantiate_forms(Square, float, float)
instantiate_forms(Negative, bfloat, bfloat16_t)
