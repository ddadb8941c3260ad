#include "instantiate_reduce.h"

instantiate_reduce(float, float, float, Sum)
instantiate_reduce(half, half, half, Sum)
instantiate_reduce(bfloat, bfloat16_t, bfloat16_t, Max)
instantiate_reduce(int, int, int, Min)
instantiate_reduce(int64, int64_t, int64_t, Prod)
instantiate_reduce(bool, bool, bool, And)
