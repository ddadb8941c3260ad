/* The sanitizer: finds data races and reads of uninitialised memory in checked launches.
 *
 * The code of a checked launch calls mtl_sanitizer_access before each access of memory and
 * mtl_sanitizer_fence at each fence (compiler/sanitizer). Its threadgroups run on one system thread,
 * one after another. Shadow memory (shadow.c) keeps the accesses of each byte that a later access can
 * race with; sanitizer.c decides whether one happens before another.
 */
#ifndef METALLOID_CPU_SANITIZER_H
#define METALLOID_CPU_SANITIZER_H

#include "../fibre.h"

/* Kinds of accesses, and mtl_report.kind. The numbers are those of compiler/sanitizer. */
enum { MTL_READ = 1, MTL_WRITE = 2, MTL_ATOMIC = 4, MTL_COPY = 8 };
enum {
    MTL_RACE = 1, MTL_UNINITIALISED = 2, MTL_INACTIVE_LANE = 4, MTL_CONVERSION = 8, MTL_VARIABLE = 16,
    MTL_NAN = 32, MTL_MISALIGNED = 64, MTL_SHIFT = 128, MTL_TEXEL = 256
};
/* Of the binary logarithm of the alignment, in the kind that mtl_sanitizer_access gets. */
enum { MTL_ALIGNMENT_SHIFT = 8, MTL_MAX_ALIGNMENT = 16 };

/* Memory that an argument of a launch points to, and what it has before the launch. */
typedef struct mtl_memory {
    uint64_t address, bytes, contents; /* enum mtl_contents */
} mtl_memory;
enum mtl_space { MTL_DEVICE, MTL_THREADGROUP, MTL_SPACES };
enum { MTL_MAX_THREADS = 1024, MTL_REPORTS = 256, MTL_VALUE_BYTES = 16 };

/* An access: of which thread, where in the program, and after which barriers of the thread. */
typedef struct mtl_access {
    uint32_t group; /* number of the threadgroup, from 1; 0 = no access */
    uint16_t thread, site;
    uint32_t epoch, simd_epoch;       /* barriers that order the accessed memory */
    uint32_t barriers, simd_barriers; /* all barriers */
} mtl_access;

/* Accesses of a unit of memory. Two readers stand for all: see add_access. */
typedef struct mtl_cell {
    mtl_access write; /* the last one that is not atomic */
    mtl_access reads[2];
    uint32_t atomics; /* index of a mtl_atomics; 0 = none */
} mtl_cell;

typedef struct mtl_atomics {
    mtl_access writes[2], reads[2];
} mtl_atomics;

typedef struct mtl_report {
    uint32_t kind, count;
    uint32_t space, bytes; /* of the second access; of the values */
    uint64_t address; /* MTL_INACTIVE_LANE: the lane */
    uint64_t offset;  /* in the threadgroup variable, or the threadgroup's memory */
    mtl_access accesses[2];   /* the first one has no group if the kind is not MTL_RACE */
    uint32_t kinds[2];
    uint8_t values[2][MTL_VALUE_BYTES];
} mtl_report;

_Static_assert(sizeof(mtl_access) == 24 && sizeof(mtl_report) == 120, "Python unpacks them");

/* shadow.c */
typedef void mtl_visit_cell(mtl_cell *cell, void *state);
bool mtl_shadow_visit(uint64_t address, uint64_t bytes, mtl_visit_cell *visit, void *state);
mtl_atomics *mtl_shadow_atomics(mtl_cell *cell);
void mtl_shadow_clear(void);

/* fast_shadow.c */
void mtl_shadow_set_memory(const void *threadgroup_memory);

/* schedule.c: the order of the threads of a launch. */
uint64_t mtl_schedule_group(uint64_t index);
void mtl_schedule_yield(mtl_context *context);
bool mtl_schedule_run(mtl_context *context, uint32_t simdgroups);

/* sanitizer.c */
void mtl_sanitizer_barrier(mtl_context *context, uint32_t flags, bool of_simdgroup);
void mtl_sanitizer_inactive(mtl_context *context, const mtl_fibre *reader, uint32_t lane);

/* clocks.c: which accesses of other threadgroups happen before those of this one. */
void mtl_clocks_enter(void);
void mtl_clocks_fence(uint32_t group, uint32_t epoch, bool releases, bool acquires);
void mtl_clocks_atomic(uint64_t address, bool reads, bool writes);
bool mtl_clocks_happens_before(const mtl_access *access);
void mtl_clocks_begin(uint32_t groups);
void mtl_clocks_clear(void);

#endif
