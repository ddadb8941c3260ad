#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/copy.h"

#define instantiate_contiguous(name, from, to)            \
  instantiate_kernel("copy_s_" #name, copy_s, from, to)   \
  instantiate_kernel("copy_v_" #name, copy_v, from, to)   \
  instantiate_kernel("copy_s2_" #name, copy_s2, from, to) \
  instantiate_kernel("copy_v2_" #name, copy_v2, from, to)

#define instantiate_general(name, from, to)                                       \
  instantiate_kernel("copy_g_nd1_" #name, copy_g_nd1, from, to)                   \
  instantiate_kernel("copy_g_nd2_" #name, copy_g_nd2, from, to)                   \
  instantiate_kernel("copy_g_nd3_" #name, copy_g_nd3, from, to)                   \
  instantiate_kernel("copy_g_" #name, copy_g, from, to)                           \
  instantiate_kernel("copy_g_n2_" #name, copy_g, from, to, 2, int)                \
  instantiate_kernel("copy_gg_nd1_" #name, copy_gg_nd1, from, to)                 \
  instantiate_kernel("copy_gg_nd2_" #name, copy_gg_nd2, from, to)                 \
  instantiate_kernel("copy_gg_nd3_" #name, copy_gg_nd3, from, to)                 \
  instantiate_kernel("copy_gg_" #name, copy_gg, from, to)                         \
  instantiate_kernel("copy_gg_n2_" #name, copy_gg, from, to, 2, int)              \
  instantiate_kernel("copy_gg_dynamic_nd1_" #name, copy_gg_dynamic_nd1, from, to) \
  instantiate_kernel("copy_gg_dynamic_nd2_" #name, copy_gg_dynamic_nd2, from, to) \
  instantiate_kernel("copy_gg_dynamic_nd3_" #name, copy_gg_dynamic_nd3, from, to) \
  instantiate_kernel("copy_gg_dynamic_" #name, copy_gg_dynamic, from, to)

instantiate_contiguous(float_float, float, float)
instantiate_contiguous(float_half, float, half)
instantiate_contiguous(half_bfloat, half, bfloat16_t)
instantiate_contiguous(bool_float, bool, float)
instantiate_contiguous(float_complex, float, complex64_t)
instantiate_contiguous(complex_bool, complex64_t, bool)
instantiate_general(float_float, float, float)
instantiate_general(int_bfloat, int, bfloat16_t)
