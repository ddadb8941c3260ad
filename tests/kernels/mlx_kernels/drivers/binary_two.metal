#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/binary_ops.h"
#include "mlx/backend/metal/kernels/binary_two.h"

#define instantiate_forms(op, name, type)                                         \
  instantiate_kernel("binary_vv_" #op "_" #name, binary_vv, type, type, op)       \
  instantiate_kernel("binary_ss_" #op "_" #name, binary_ss, type, type, op)       \
  instantiate_kernel("binary_sv_" #op "_" #name, binary_sv, type, type, op)       \
  instantiate_kernel("binary_vs_" #op "_" #name, binary_vs, type, type, op)       \
  instantiate_kernel("binary_sv2_" #op "_" #name, binary_sv2, type, type, op)     \
  instantiate_kernel("binary_vs2_" #op "_" #name, binary_vs2, type, type, op)     \
  instantiate_kernel("binary_vv2_" #op "_" #name, binary_vv2, type, type, op)     \
  instantiate_kernel("binary_g_nd1_" #op "_" #name, binary_g_nd1, type, type, op) \
  instantiate_kernel("binary_g_nd2_" #op "_" #name, binary_g_nd2, type, type, op) \
  instantiate_kernel("binary_g_nd3_" #op "_" #name, binary_g_nd3, type, type, op) \
  instantiate_kernel("binary_g_" #op "_" #name, binary_g, type, type, op)

instantiate_forms(DivMod, float, float)
instantiate_forms(DivMod, int, int)
