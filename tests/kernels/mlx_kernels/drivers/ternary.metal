#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/ternary_ops.h"
#include "mlx/backend/metal/kernels/ternary.h"

#define instantiate_select(name, type)                                                    \
  instantiate_kernel("ternary_v_" #name, ternary_v, type, Select, false, false)           \
  instantiate_kernel("ternary_v_scalar_b_" #name, ternary_v, type, Select, true, false)   \
  instantiate_kernel("ternary_v2_" #name, ternary_v2, type, Select, false, false)         \
  instantiate_kernel("ternary_v2_scalar_c_" #name, ternary_v2, type, Select, false, true) \
  instantiate_kernel("ternary_g_nd1_" #name, ternary_g_nd1, type, Select)                 \
  instantiate_kernel("ternary_g_nd2_" #name, ternary_g_nd2, type, Select)                 \
  instantiate_kernel("ternary_g_nd3_" #name, ternary_g_nd3, type, Select, int)            \
  instantiate_kernel("ternary_g_" #name, ternary_g, type, Select)                         \
  instantiate_kernel("ternary_g_n2_" #name, ternary_g, type, Select, 2, int)

instantiate_select(float, float)
instantiate_select(bfloat, bfloat16_t)
instantiate_select(complex, complex64_t)
