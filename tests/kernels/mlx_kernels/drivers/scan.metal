#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/scan.h"

#define instantiate_direction(name, type, op, inclusion, inclusive, direction, reverse)          \
  instantiate_kernel("contiguous_scan_" #inclusion direction "_" #op "_" #name, contiguous_scan, \
                     type, type, op<type>, 4, inclusive, reverse)                                \
  instantiate_kernel("strided_scan_" #inclusion direction "_" #op "_" #name, strided_scan,       \
                     type, type, op<type>, 4, inclusive, reverse)

#define instantiate_scan(name, type, op)                            \
  instantiate_direction(name, type, op, inclusive, true, "", false) \
  instantiate_direction(name, type, op, exclusive, false, "", false)

#define instantiate_reverse(name, type, op)                                \
  instantiate_direction(name, type, op, inclusive, true, "_reverse", true) \
  instantiate_direction(name, type, op, exclusive, false, "_reverse", true)

instantiate_scan(float, float, CumSum)
instantiate_scan(float, float, CumProd)
instantiate_scan(float, float, CumMax)
instantiate_scan(float, float, CumMin)
instantiate_scan(float, float, CumLogaddexp)
instantiate_scan(bfloat, bfloat16_t, CumSum)
instantiate_scan(half, half, CumMax)
instantiate_scan(int64, int64_t, CumSum)
instantiate_scan(int, int, CumProd)
instantiate_reverse(float, float, CumSum)
instantiate_reverse(int, int, CumMax)
