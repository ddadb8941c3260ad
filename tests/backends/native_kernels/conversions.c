/* Conversions for which processors of the x86-64 baseline have no instruction. */
#include "kernel.h"

#define CONVERT(NAME, FROM, TO)                                                     \
    KERNEL(NAME) {                                                                  \
        const FROM *in = BUFFER(FROM, 0);                                           \
        TO *out = BUFFER(TO, 1);                                                    \
        FOR_EACH_THREAD(x, y, z) {                                                  \
            u32 i = range->threadgroup[0] * launch->threads_per_threadgroup[0] + x; \
            out[i] = (TO)in[i];                                                     \
        }                                                                           \
    }

CONVERT(float_to_half, float, _Float16)
CONVERT(float_to_bfloat, float, __bf16)
CONVERT(double_to_half, double, _Float16)
CONVERT(double_to_bfloat, double, __bf16)
CONVERT(half_to_float, _Float16, float)

/* One third as the rounding mode makes it. */
KERNEL(third) {
    volatile float three = 3;
    (void)range;
    *BUFFER(float, 0) = 1 / three;
}
