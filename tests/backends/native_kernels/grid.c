/* Kernels without barriers, and launches to time. */
#include "kernel.h"

KERNEL(nothing) {
    (void)launch;
    (void)range;
}

/* counters[thread] += 1, with the linear index of the thread in the grid */
KERNEL(count) {
    u32 *counters = BUFFER(u32, 0);
    const u32 *grid = launch->threads_per_grid, *group = launch->threads_per_threadgroup;
    FOR_EACH_THREAD(x, y, z) {
        u64 gx = range->threadgroup[0] * group[0] + x, gy = range->threadgroup[1] * group[1] + y,
            gz = range->threadgroup[2] * group[2] + z;
        counters[gx + grid[0] * (gy + grid[1] * gz)]++;
    }
}

/* Burns time: arguments[1] steps a thread. */
KERNEL(burn) {
    u32 *out = BUFFER(u32, 0);
    u32 steps = *BUFFER(u32, 1);
    FOR_EACH_THREAD(x, y, z) {
        u32 state = x + y + z;
        for (u32 i = 0; i < steps; i++) state = state * 1664525u + 1013904223u;
        out[range->threadgroup[0] * launch->threads_per_threadgroup[0] + x] = state;
    }
}

/* log[log[0]++ + 1] = arguments[1]: shows in which order launches of one thread ran */
KERNEL(append) {
    u32 *log = BUFFER(u32, 0);
    (void)range;
    log[++log[0]] = *BUFFER(u32, 1);
}

/* values[i] = values[i] * 3 + arguments[1]: does not commute */
KERNEL(affine) {
    u32 *values = BUFFER(u32, 0);
    u32 offset = *BUFFER(u32, 1);
    FOR_EACH_THREAD(x, y, z) {
        u32 i = range->threadgroup[0] * launch->threads_per_threadgroup[0] + x;
        values[i] = values[i] * 3 + offset;
    }
}

/* thread_of[group] = the thread of the operating system that ran it, after arguments[1] steps */
KERNEL(sign) {
    volatile u32 steps = *BUFFER(u32, 1);
    while (steps > 0) steps--;
    BUFFER(u64, 0)[range->threadgroup[0]] = (u64)__builtin_thread_pointer();
}
