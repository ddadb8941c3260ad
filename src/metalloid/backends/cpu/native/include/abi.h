/* The contract between the runtime and a compiled kernel.
 *
 * Valid C and C++, and free of includes: kernels are compiled without any system header.
 *
 * A kernel object exports one mtl_entry. It runs the kernel body once for every thread whose
 * position in the threadgroup lies in the box first <= position < last, x fastest. The runtime
 * calls it
 *   - in LOOP mode once per threadgroup with the whole box (kernels that never wait for each
 *     other). A kernel may go on with those that follow, x fastest, taking them off
 *     mtl_range.following and leaving its position and size in the range: a call is a good part
 *     of what a small threadgroup costs;
 *   - in FIBRE mode once per thread with a box of one thread, each call on a stack of its own, so
 *     that a thread can be suspended inside a barrier or a simdgroup function.
 * All threads of a threadgroup run on one operating system thread, so `threadgroup` variables of
 * static size are thread-local globals of the kernel object.
 */
#ifndef METALLOID_CPU_ABI_H
#define METALLOID_CPU_ABI_H

/* Changes with any layout or meaning in this file, in mtl_descriptor or in mtl_outcome. */
#define MTL_ABI_VERSION 4

typedef struct mtl_launch {
    /* One word per kernel parameter. Buffers: the address. [[threadgroup(n)]] parameters: the byte
     * offset into mtl_range.threadgroup_memory. Ids such as thread_position_in_grid: unused.
     * Kernels that check accesses get as many more, the bytes of the memory of each, and words for
     * pointers in memory (compiler/bounds/table.py). The last ones may be those of
     * mtl_private_buffer. */
    void *const *arguments;
    unsigned int threads_per_grid[3];
    unsigned int threads_per_threadgroup[3]; /* the full size that was asked for */
    unsigned int threadgroups_per_grid[3];   /* counts partial threadgroups at the edges */
    unsigned int relaxed_barriers; /* whether a barrier may be missed by threads that have ended */
} mtl_launch;

typedef struct mtl_range {
    unsigned int threadgroup[3]; /* position of the threadgroup in the grid */
    unsigned int size[3];        /* threads in this threadgroup: fewer at the edges of the grid */
    unsigned int first[3];       /* the box of positions in the threadgroup to run: */
    unsigned int last[3];        /* from first, to last excluded */
    char *threadgroup_memory;    /* aligned to 64 bytes; contents undefined */
    unsigned int thread[3];      /* where it is: kept by kernels that log or assert */
    unsigned int following;      /* threadgroups after this one that the call may run as well */
} mtl_range;

/* Shadow memory of the sanitizer's vector form: see shadow.h. Device memory is space 0, threadgroup
 * memory 1. Times are numbers of ticks, which are threadgroups and barriers of all launches. */
enum { MTL_SHADOW_RANGES = 64, MTL_SHADOW_SIMDGROUPS = 32, MTL_SHADOW_TICK = 1 << 19 };

/* Of device memory before a launch: written by something; zeros, as nothing has written to it; or nothing. */
enum mtl_contents { MTL_WRITTEN, MTL_ZEROS, MTL_NO_CONTENTS };

typedef struct mtl_shadow_range {
    unsigned long long first, bytes; /* memory */
    unsigned long long *words;       /* one for each unit of 1 << unit_bits bytes */
    unsigned int unit_bits, space;
    unsigned int contents, unused;   /* enum mtl_contents */
} mtl_shadow_range;

typedef struct mtl_shadow_state {
    unsigned long long time;
    unsigned long long floor[2];       /* of each space: when the first access was that counts, */
    unsigned long long group_start;    /* when the threadgroup began, */
    unsigned long long epoch_start[2]; /* and when it passed its last barrier with that flag */
    unsigned long long simd_start[2][MTL_SHADOW_SIMDGROUPS]; /* the same of simdgroup barriers */
    unsigned int members[MTL_SHADOW_SIMDGROUPS];             /* lanes, by simdgroup */
    unsigned int index;            /* of lane 0 in its threadgroup */
    unsigned int threads, arrived; /* of the threadgroup; those past its last barrier */
    unsigned int alarm;            /* not 0: there may be a defect */
    unsigned int range_count, last_range;
    mtl_shadow_range ranges[MTL_SHADOW_RANGES];
} mtl_shadow_state;

typedef void mtl_entry(const mtl_launch *launch, mtl_range *range);

#endif
