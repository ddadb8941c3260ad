/* Threadgroup barriers, good and bad. */
#include "kernel.h"

/* Reverses each threadgroup through its memory. */
KERNEL(reverse) {
    const u32 *in = BUFFER(u32, 0);
    u32 *out = BUFFER(u32, 1);
    u32 *tile = THREADGROUP(u32, 2);
    u32 i = range->first[0];
    tile[i] = in[GLOBAL_X];
    __msl_threadgroup_barrier(0);
    out[GLOBAL_X] = tile[range->size[0] - 1 - i];
}

/* Sums each threadgroup as a tree; tests many barriers, static memory and three dimensions. */
KERNEL(tree_sum) {
    static _Thread_local u32 tile[1024];
    const u32 *in = BUFFER(u32, 0);
    u32 *out = BUFFER(u32, 1);
    const u32 *groups = launch->threadgroups_per_grid, *group = launch->threads_per_threadgroup;
    u32 local = LOCAL_INDEX, threads = range->size[0] * range->size[1] * range->size[2];
    u64 index = 0;
    for (int axis = 2; axis >= 0; axis--) {
        u64 position = range->threadgroup[axis] * group[axis] + range->first[axis];
        index = index * launch->threads_per_grid[axis] + position;
    }
    tile[local] = in[index];
    __msl_threadgroup_barrier(0);
    for (u32 width = 512; width > 0; width /= 2) {
        u32 other = local < width && local + width < threads ? tile[local + width] : 0;
        __msl_threadgroup_barrier(0);
        tile[local] += other;
        __msl_threadgroup_barrier(0);
    }
    if (local == 0) {
        const u32 *at = range->threadgroup;
        out[at[0] + groups[0] * (at[1] + groups[1] * at[2])] = tile[0];
    }
}

/* arguments[0] barriers: only for timing */
KERNEL(many_barriers) {
    u32 count = *BUFFER(u32, 0);
    (void)range;
    for (u32 i = 0; i < count; i++) __msl_threadgroup_barrier(0);
}

/* arguments[0] simdgroup barriers: only for timing */
KERNEL(many_simdgroup_barriers) {
    u32 count = *BUFFER(u32, 0);
    (void)range;
    for (u32 i = 0; i < count; i++) __msl_simdgroup_barrier(0);
}

/* Thread arguments[0] of every threadgroup never comes to the barrier. */
KERNEL(deserter) {
    if (LOCAL_INDEX == *BUFFER(u32, 0)) return;
    __msl_threadgroup_barrier(0);
}

/* Threads from arguments[0] on wait at another barrier than the others. */
KERNEL(two_barriers) {
    u32 *out = BUFFER(u32, 1);
    if (LOCAL_INDEX < *BUFFER(u32, 0)) {
        __msl_threadgroup_barrier(0);
        out[0] = 1;
    } else {
        __msl_threadgroup_barrier(0);
        out[0] = 2;
    }
}
