#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/sort.h"
#include "mlx/backend/metal/kernels/searchsorted.h"

instantiate_kernel("searchsorted_left_float", searchsorted, float, false)
instantiate_kernel("searchsorted_right_float", searchsorted, float, true)
instantiate_kernel("searchsorted_left_int64", searchsorted, int64_t, false)
