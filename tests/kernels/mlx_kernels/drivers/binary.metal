#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/binary_ops.h"
#include "mlx/backend/metal/kernels/binary.h"

#define instantiate_binary(op, name, type, result) \
  instantiate_kernel("binary_vv_" #op "_" #name, binary_vv, type, result, op)

#define instantiate_forms(op, name, type, result)                                        \
  instantiate_kernel("binary_ss_" #op "_" #name, binary_ss, type, result, op)            \
  instantiate_kernel("binary_sv_" #op "_" #name, binary_sv, type, result, op)            \
  instantiate_kernel("binary_vs_" #op "_" #name, binary_vs, type, result, op)            \
  instantiate_kernel("binary_sv2_" #op "_" #name, binary_sv2, type, result, op)          \
  instantiate_kernel("binary_vs2_" #op "_" #name, binary_vs2, type, result, op)          \
  instantiate_kernel("binary_vv2_" #op "_" #name, binary_vv2, type, result, op)          \
  instantiate_kernel("binary_g_nd1_" #op "_" #name, binary_g_nd1, type, result, op)      \
  instantiate_kernel("binary_g_nd2_" #op "_" #name, binary_g_nd2, type, result, op)      \
  instantiate_kernel("binary_g_nd3_" #op "_" #name, binary_g_nd3, type, result, op, int) \
  instantiate_kernel("binary_g_" #op "_" #name, binary_g, type, result, op)              \
  instantiate_kernel("binary_g_n2_" #op "_" #name, binary_g, type, result, op, 2, int)

#define instantiate_arithmetic(name, type)          \
  instantiate_binary(Add, name, type, type)         \
  instantiate_binary(Subtract, name, type, type)    \
  instantiate_binary(Multiply, name, type, type)    \
  instantiate_binary(Divide, name, type, type)      \
  instantiate_binary(FloorDivide, name, type, type) \
  instantiate_binary(Remainder, name, type, type)   \
  instantiate_binary(Maximum, name, type, type)     \
  instantiate_binary(Minimum, name, type, type)     \
  instantiate_binary(Less, name, type, bool)

instantiate_arithmetic(float, float)
instantiate_arithmetic(half, half)
instantiate_arithmetic(bfloat, bfloat16_t)
instantiate_arithmetic(int, int)

instantiate_binary(Power, float, float, float)
instantiate_binary(Power, int, int, int)
instantiate_binary(LogAddExp, float, float, float)
instantiate_binary(LogAddExp, bfloat, bfloat16_t, bfloat16_t)
instantiate_binary(ArcTan2, float, float, float)
instantiate_binary(NaNEqual, float, float, bool)
instantiate_binary(BitwiseXor, uint, uint, uint)
instantiate_binary(LeftShift, uint, uint, uint)
instantiate_binary(LogicalAnd, bool, bool, bool)
instantiate_binary(Multiply, complex, complex64_t, complex64_t)
instantiate_binary(Divide, complex, complex64_t, complex64_t)
instantiate_binary(Power, complex, complex64_t, complex64_t)

instantiate_forms(Subtract, float, float, float)
instantiate_forms(Less, half, half, bool)
