/* One kernel per simdgroup function: arguments are input, output, which lanes call it, and
 * operands.
 *
 * Lanes with takes_part[i] == 0 skip the call; lanes with 2 make the same call from another
 * call site. */
#include "kernel.h"

#define IN_BOTH_BRANCHES(CALL)            \
    u32 i = GLOBAL_X;                     \
    const u8 *takes_part = BUFFER(u8, 2); \
    if (takes_part[i] == 1) {             \
        out[i] = CALL;                    \
    } else if (takes_part[i] == 2) {      \
        out[i] = CALL;                    \
    }

#define UNARY(P, NAME, T)                                 \
    CONVERGENT T __msl_##P##_##NAME##_##T(T value);         \
    KERNEL(test_##P##_##NAME##_##T) {                     \
        const T *in = BUFFER(T, 0);                       \
        T *out = BUFFER(T, 1);                            \
        IN_BOTH_BRANCHES(__msl_##P##_##NAME##_##T(in[i])) \
    }

#define SHUFFLE(P, NAME, T)                                           \
    CONVERGENT T __msl_##P##_##NAME##_##T(T data, u16 operand);         \
    KERNEL(test_##P##_##NAME##_##T) {                                 \
        const T *in = BUFFER(T, 0);                                   \
        T *out = BUFFER(T, 1);                                        \
        const u16 *operand = BUFFER(u16, 3);                          \
        IN_BOTH_BRANCHES(__msl_##P##_##NAME##_##T(in[i], operand[i])) \
    }

#define FILL(P, NAME, T)                                                                   \
    CONVERGENT T __msl_##P##_##NAME##_##T(T data, T filling, u16 delta, u16 modulo);         \
    KERNEL(test_##P##_##NAME##_##T) {                                                      \
        const T *in = BUFFER(T, 0);                                                        \
        T *out = BUFFER(T, 1);                                                             \
        const u16 *delta = BUFFER(u16, 3), *modulo = BUFFER(u16, 4);                       \
        const T *filling = BUFFER(T, 5);                                                   \
        IN_BOTH_BRANCHES(__msl_##P##_##NAME##_##T(in[i], filling[i], delta[i], modulo[i])) \
    }

#define ARITHMETIC(P, T)                  \
    UNARY(P, sum, T)                      \
    UNARY(P, product, T)                  \
    UNARY(P, min, T)                      \
    UNARY(P, max, T)                      \
    UNARY(P, prefix_inclusive_sum, T)     \
    UNARY(P, prefix_exclusive_sum, T)     \
    UNARY(P, prefix_inclusive_product, T) \
    UNARY(P, prefix_exclusive_product, T)

#define BITS(P, T)                     \
    UNARY(P, and, T)                   \
    UNARY(P, or, T)                    \
    UNARY(P, xor, T)                   \
    UNARY(P, broadcast_first, T)       \
    SHUFFLE(P, broadcast, T)           \
    SHUFFLE(P, shuffle, T)             \
    SHUFFLE(P, shuffle_xor, T)         \
    SHUFFLE(P, shuffle_up, T)          \
    SHUFFLE(P, shuffle_down, T)        \
    SHUFFLE(P, shuffle_rotate_up, T)   \
    SHUFFLE(P, shuffle_rotate_down, T) \
    FILL(P, shuffle_and_fill_up, T)    \
    FILL(P, shuffle_and_fill_down, T)

#define ALL(P)                                          \
    ARITHMETIC(P, i32)                                  \
    ARITHMETIC(P, u32)                                  \
    ARITHMETIC(P, i64)                                  \
    ARITHMETIC(P, u64)                                  \
    ARITHMETIC(P, f32)                                  \
    BITS(P, b32)                                        \
    BITS(P, b64)                                        \
    CONVERGENT u64 __msl_##P##_ballot(_Bool vote);        \
    KERNEL(test_##P##_ballot_b64) {                     \
        const u64 *in = BUFFER(u64, 0);                 \
        u64 *out = BUFFER(u64, 1);                      \
        IN_BOTH_BRANCHES(__msl_##P##_ballot(in[i] & 1)) \
    }

ALL(simd)
ALL(quad)

KERNEL(lane_numbers) { BUFFER(u32, 0)[GLOBAL_X] = __msl_simd_lane(); }

/* A loop that each lane runs trips[i] times: in round r the sum is over the lanes still in the
 * loop. After it all lanes meet again. */
KERNEL(divergent_loop) {
    const u32 *trips = BUFFER(u32, 0);
    u32 *out = BUFFER(u32, 1), *after = BUFFER(u32, 2);
    u32 i = GLOBAL_X, total = 0;
#pragma clang loop unroll(disable)
    for (u32 round = 0; round < trips[i]; round++) total = total * 5 + __msl_simd_sum_u32(1);
    out[i] = total;
    after[i] = __msl_simd_sum_u32(1);
}

/* Nested: odd lanes take an inner loop with a sum of their own, then all lanes meet. The
 * numbers are needed: compiled, the inner loop comes after the outer sum. */
KERNEL(nested_loop) {
    const u32 *trips = BUFFER(u32, 0);
    u32 *out = BUFFER(u32, 1), *after = BUFFER(u32, 2);
    u32 i = GLOBAL_X, total = 0;
#pragma clang loop unroll(disable)
    for (u32 round = 0; round < trips[i]; round++) {
        if (i & 1) {
#pragma clang loop unroll(disable)
            for (u32 inner = 0; inner < i % 5; inner++) {
                __msl_site(1);
                total = total * 3 + __msl_simd_sum_u32(1);
            }
        }
        __msl_site(2);
        total = total * 7 + __msl_simd_sum_u32(i);
    }
    out[i] = total;
    __msl_site(3);
    after[i] = __msl_simd_sum_u32(1);
}

/* Exchanges while other lanes of the simdgroup already wait at the barrier. */
KERNEL(exchange_before_barrier) {
    u32 *out = BUFFER(u32, 0), *tile = THREADGROUP(u32, 1);
    u32 i = range->first[0];
    tile[i] = i % 3 == 0 ? __msl_simd_sum_u32(1) : 0;
    __msl_threadgroup_barrier(0);
    out[GLOBAL_X] = tile[(i + 1) % range->size[0]] + __msl_simd_sum_u32(1);
}
