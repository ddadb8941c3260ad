/* Conversions to and from half and bfloat that compiled kernels call on processors without the
 * instructions. Names and calling convention are those of the compiler's support library. */
#include "runtime.h"

#include <string.h>

/* Binary formats by their field widths; the values are the low bits of a 64-bit word. */
typedef struct format {
    int exponent_bits, fraction_bits;
} format;

static const format f64 = {11, 52}, f32 = {8, 23}, f16 = {5, 10}, bf16 = {8, 7};

/* Rounds to nearest, ties to even. NaN keeps its sign and the top of its payload and becomes
 * quiet. */
static uint64_t narrow(uint64_t bits, format from, format to) {
    const uint64_t one = 1;
    int dropped = from.fraction_bits - to.fraction_bits;
    int from_bias = (1 << (from.exponent_bits - 1)) - 1;
    int to_bias = (1 << (to.exponent_bits - 1)) - 1;
    int from_limit = 2 * from_bias + 1, to_limit = 2 * to_bias + 1; /* of infinity and NaN */

    uint64_t fraction = bits & ((one << from.fraction_bits) - 1);
    int exponent = (int)(bits >> from.fraction_bits) & from_limit;
    uint64_t sign = bits >> (from.fraction_bits + from.exponent_bits) & 1;
    uint64_t signed_zero = sign << (to.fraction_bits + to.exponent_bits);
    uint64_t infinity = signed_zero | (uint64_t)to_limit << to.fraction_bits;

    if (exponent == from_limit) {
        uint64_t quiet = one << (to.fraction_bits - 1);
        return fraction ? infinity | quiet | fraction >> dropped : infinity;
    }
    /* A subnormal has the exponent of the smallest normal number, but no leading one. */
    uint64_t significand = exponent ? fraction | one << from.fraction_bits : fraction;
    int rebased = (exponent ? exponent : 1) - from_bias + to_bias;
    if (rebased >= to_limit) return infinity;
    if (rebased < 1) {
        dropped += 1 - rebased;
        if (dropped > from.fraction_bits + 2) return signed_zero; /* below half of the smallest */
        rebased = 1;
    }
    uint64_t rounded = significand >> dropped;
    uint64_t rest = significand & ((one << dropped) - 1), half = one << (dropped - 1);
    rounded += rest > half || (rest == half && (rounded & 1));
    /* The leading one, if there is one, adds the last unit of the exponent; so does a rounding
     * carry. */
    return signed_zero | (((uint64_t)(rebased - 1) << to.fraction_bits) + rounded);
}

/* Exact. */
static uint32_t half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 31) {
        uint32_t quiet = fraction ? 0x400000 : 0;
        return sign | 0x7f800000 | quiet | fraction << 13;
    }
    if (exponent > 0) return sign | (exponent + 127 - 15) << 23 | fraction << 13;
    if (fraction == 0) return sign;
    uint32_t shift = (uint32_t)__builtin_clz(fraction) - 21; /* brings the leading one to bit 10 */
    return sign | (127 - 14 - shift) << 23 | (fraction << shift & 1023) << 13;
}

/* The bytes of x as a value of type To. */
#define REINTERPRET(To, x)                \
    ({                                    \
        __typeof__(x) from_ = (x);        \
        To to_;                           \
        memcpy(&to_, &from_, sizeof to_); \
        to_;                              \
    })

MTL_EXPORT _Float16 __truncsfhf2(float x) {
    return REINTERPRET(_Float16, (uint16_t)narrow(REINTERPRET(uint32_t, x), f32, f16));
}

MTL_EXPORT _Float16 __truncdfhf2(double x) {
    return REINTERPRET(_Float16, (uint16_t)narrow(REINTERPRET(uint64_t, x), f64, f16));
}

MTL_EXPORT __bf16 __truncsfbf2(float x) {
    return REINTERPRET(__bf16, (uint16_t)narrow(REINTERPRET(uint32_t, x), f32, bf16));
}

MTL_EXPORT __bf16 __truncdfbf2(double x) {
    return REINTERPRET(__bf16, (uint16_t)narrow(REINTERPRET(uint64_t, x), f64, bf16));
}

MTL_EXPORT float __extendhfsf2(_Float16 x) {
    return REINTERPRET(float, half_to_float(REINTERPRET(uint16_t, x)));
}
