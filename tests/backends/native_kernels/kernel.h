/* What the test kernels share: thread loops and the functions of the runtime. */
#ifndef TEST_KERNEL_H
#define TEST_KERNEL_H

#include "abi.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
typedef float f32;
typedef u32 b32;
typedef u64 b64;

#define KERNEL(name) void name(const mtl_launch *launch, mtl_range *range)
#define BUFFER(T, n) ((T *)launch->arguments[n])
#define THREADGROUP(T, n) ((T *)(range->threadgroup_memory + (u64)launch->arguments[n]))

#define FOR_AXIS(v, axis) for (u32 v = range->first[axis]; v < range->last[axis]; v++)
#define FOR_EACH_THREAD(x, y, z) FOR_AXIS(z, 2) FOR_AXIS(y, 1) FOR_AXIS(x, 0)

/* In a kernel for FIBRE mode the box has one thread. */
#define LOCAL_INDEX \
    (range->first[0] + range->size[0] * (range->first[1] + range->size[1] * range->first[2]))
#define GLOBAL_X (range->threadgroup[0] * launch->threads_per_threadgroup[0] + range->first[0])

/* Which threads make a call together is part of its meaning, so the compiler must not move the
 * call, nor merge it with the same call in another branch. */
#define CONVERGENT __attribute__((convergent, nomerge))

CONVERGENT void __msl_threadgroup_barrier(u32 flags);
CONVERGENT void __msl_simdgroup_barrier(u32 flags);
u32 __msl_simd_lane(void);
void __msl_site(u32 number);
void __msl_iteration(u32 first, u32 round);

#endif
