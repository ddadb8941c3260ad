/* Kernels that fail. Volatile keeps the compiler from proving it. */
#include "kernel.h"

KERNEL(wild_write) {
    (void)range;
    *(volatile u32 *)launch->arguments[0] = 1;
}

KERNEL(wild_read) {
    volatile u32 *sink = BUFFER(u32, 1);
    *sink = *(volatile u32 *)launch->arguments[0] + range->first[0];
}

KERNEL(wild_jump) {
    (void)range;
    ((void (*)(void))launch->arguments[0])();
}

KERNEL(divide) {
    volatile i32 *numbers = BUFFER(i32, 0);
    (void)range;
    numbers[2] = numbers[0] / numbers[1];
}

KERNEL(trap) {
    (void)launch;
    (void)range;
    __builtin_trap();
}

__attribute__((noinline)) static u32 descend(volatile u32 *depth) {
    volatile u32 frame[64];
    frame[*depth % 64] = ++*depth;
    return descend(depth) + frame[*depth % 64];
}

KERNEL(recurse) {
    (void)range;
    u32 depth = 0;
    *BUFFER(u32, 0) = descend(&depth);
}

/* Recurses to the depth arguments[1] and comes back: deep stacks must work. */
__attribute__((noinline)) static u32 sum_to(u32 n) {
    volatile u32 frame[16];
    frame[n % 16] = n;
    return n == 0 ? 0 : sum_to(n - 1) + frame[n % 16];
}

KERNEL(deep_sum) {
    (void)range;
    *BUFFER(u32, 0) = sum_to(*BUFFER(u32, 1));
}

/* A private array larger than the stack of a fibre and its guard. */
KERNEL(large_frame) {
    volatile u8 array[400 << 10];
    u32 index = range->size[0];
    array[index] = 1;
    *BUFFER(u32, 0) = array[index];
}

/* Only threadgroup arguments[1], thread arguments[2] of it writes to address 64; the others
 * count. */
KERNEL(one_bad_thread) {
    const u32 *group = BUFFER(u32, 1), *thread = BUFFER(u32, 2);
    const u32 *at = range->threadgroup;
    __msl_simdgroup_barrier(0);
    if (at[0] == group[0] && at[1] == group[1] && at[2] == group[2] &&
        range->first[0] == thread[0] && range->first[1] == thread[1] &&
        range->first[2] == thread[2]) {
        *(volatile u32 *)launch->arguments[0] = 1;
    }
    __msl_threadgroup_barrier(0);
}
