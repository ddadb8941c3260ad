#include "instantiate_reduce.h"

instantiate_reduce(complex, complex64_t, complex64_t, Sum)
