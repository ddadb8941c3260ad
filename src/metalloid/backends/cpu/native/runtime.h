/* What the files of the runtime share. Python sees mtl_descriptor, mtl_outcome and the exported
 * functions; everything else is internal and hidden. */
#ifndef METALLOID_CPU_RUNTIME_H
#define METALLOID_CPU_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "abi.h"

#define MTL_EXPORT __attribute__((visibility("default")))

enum mtl_status {
    MTL_OK = 0,
    MTL_SIGNAL = 1,            /* bad memory access, integer division by zero, trap: see signal */
    MTL_STACK_OVERFLOW = 2,    /* recursion or private arrays too large for the stack */
    MTL_BARRIER_MISSED = 3,    /* some threads wait at a barrier that others never reached */
    MTL_LANE_OUT_OF_RANGE = 4, /* shuffle or broadcast from a lane that no simdgroup has */
    MTL_OUT_OF_MEMORY = 5,     /* no memory for stacks or threadgroup memory */
    MTL_BARRIER_MISMATCH = 6,   /* threads of one threadgroup wait at different barriers */
    MTL_BAD_MODULO = 7,        /* shuffle_and_fill with a modulo that is no power of two in range */
    MTL_BAD_DESCRIPTOR = 8,    /* no entry, empty threadgroup, or more threads than countable */
    MTL_UNKNOWN_TICKET = 9,    /* never issued, already fetched, or issued before a fork */
    MTL_ASSERTION = 10,        /* see condition, file and line */
    MTL_TIMED_OUT = 11,        /* it ran for longer than limit_ns */
    MTL_CANCELLED = 12,        /* by its caller, or since a Python signal handler raised (Ctrl-C) */
    MTL_INTERRUPTED = 13,      /* the caller has to raise what a Python signal handler raised */
    MTL_NESTED = 14,           /* launched by a Python signal handler that interrupted a kernel */
    MTL_OUTSIDE = 15           /* an access outside of its object: see site, address and extent */
};

/* mtl_descriptor.flags */
enum {
    MTL_FIBRE = 1,  /* run in FIBRE mode */
    MTL_RELAXED = 2, /* barriers open for all waiting threads, and do not wait for returned ones */
    MTL_CHECKED = 4, /* the code tells the sanitizer of its accesses: see sanitizer.h */
    MTL_SCHEDULED = 8, /* and its threads run in the order of a schedule: see schedule.c */
    MTL_ALONE = 16, /* the code counts without atomics: one thread of the system runs it */
    MTL_CALL = 32,  /* no kernel: the entry is an mtl_call, which the calling thread runs */
    MTL_PRIVATE_SHIFT = 16 /* the bits from here on count the buffers of which each thread of the
                              system has a copy; they are the last words of the launch */
};

/* A buffer of floats to which a launch only adds. */
typedef struct mtl_private_buffer {
    uint64_t word; /* position of its address */
    uint64_t bytes;
} mtl_private_buffer;

/* A function of a library that works between launches; no signal ends it. */
typedef void mtl_call(const uint64_t *arguments);

/* One launch, laid out without padding so that Python can pack it. */
typedef struct mtl_descriptor {
    uint64_t entry; /* address of an mtl_entry */
    uint32_t flags;
    uint32_t argument_count;
    uint32_t grid[3];           /* threads in the grid, exact */
    uint32_t group[3];          /* threads per threadgroup */
    uint32_t threadgroup_bytes; /* dynamic threadgroup memory of one threadgroup */
    uint32_t variable_bytes;    /* threadgroup variables, which precede it */
    uint64_t cost_slot; /* 0, or address of a double: measured ns per threadgroup, 0.0 = unknown */
    uint64_t limit_ns;  /* how long it may run; 0 = as the default says (mtl_set_default_limit) */
    uint64_t arguments[];
} mtl_descriptor;

enum { MTL_THREADGROUP_VALID = 1, MTL_THREAD_VALID = 2 }; /* bits of mtl_outcome.valid */

/* How a launch ended. */
typedef struct mtl_outcome {
    int32_t status;
    int32_t signal;          /* MTL_SIGNAL, MTL_STACK_OVERFLOW */
    uint64_t address;        /* MTL_SIGNAL, MTL_STACK_OVERFLOW: that of the bad access, else 0;
                                MTL_OUTSIDE: offset of its site, in bytes */
    uint32_t threadgroup[3]; /* where it failed */
    uint32_t thread[3];      /* position in the threadgroup; never known in LOOP mode */
    uint32_t valid;          /* which of the two positions are known */
    uint32_t arrived;        /* barrier failures: threads at the barrier; MTL_OUTSIDE: how many more
                                threads failed of those that ran together */
    uint32_t expected;       /* barrier failures: threads in the threadgroup */
    uint32_t lane;           /* the lane that does not exist, the bad modulo, or MTL_OUTSIDE's site */
    double seconds;          /* from the first threadgroup started to the last one finished */
    uint64_t code;           /* address of the instruction or the call site, for debuggers */
    uint64_t condition, file; /* MTL_ASSERTION: texts in the kernel's object */
    uint32_t line, unused;
    uint64_t limit_ns; /* MTL_TIMED_OUT; the extent for MTL_OUTSIDE */
} mtl_outcome;

_Static_assert(offsetof(mtl_descriptor, arguments) == 64, "Python packs it");
_Static_assert(sizeof(mtl_outcome) == 104, "Python unpacks it");

/* A launch in progress. The first block is constant while it runs. */
typedef struct mtl_job {
    mtl_entry *entry;
    mtl_launch launch;
    bool uses_fibres, relaxed, checked, scheduled;
    uint32_t threadgroup_bytes, variable_bytes;
    uint32_t argument_count, private_count;
    const mtl_private_buffer *private_buffers;
    uint32_t seats; /* threads that may work on it at a time */
    uint64_t group_count;
    uint64_t even_share; /* threadgroups for each thread, where all shares are to be equal, or 0 */
    _Atomic(double) *cost;
    uint64_t limit_ns; /* how long it may run; 0 = no limit */

    _Alignas(64) _Atomic uint64_t next_group; /* the first threadgroup not yet handed out */
    _Atomic bool cancelled;                   /* set by the first failure, which owns `outcome` */
    _Atomic uint64_t busy_ns;                 /* sum over the threads that worked on it */

    /* Guarded by the pool's lock while the job is queued. */
    _Alignas(64) struct mtl_job *next;
    uint32_t workers; /* threads that work on it now */
    bool complete;
    uint64_t started_ns;
    _Atomic uint64_t deadline_ns; /* 0 = not started, or no limit */
    mtl_outcome outcome;

    /* Jobs with a ticket live on the heap and are counted; others live on their caller's stack. */
    _Atomic uint32_t references;
    uint64_t ticket;
    struct mtl_job *next_in_bucket;
} mtl_job;

static inline uint64_t mtl_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* job.c */
void mtl_job_init(mtl_job *job, const mtl_descriptor *descriptor, void *const *arguments,
                  uint32_t threads);
bool mtl_job_exhausted(const mtl_job *job);
bool mtl_job_take(mtl_job *job, uint64_t count, uint64_t *first, uint64_t *end);
uint64_t mtl_job_fair_share(const mtl_job *job);
double mtl_job_cost(const mtl_job *job);
void mtl_job_start(mtl_job *job);
bool mtl_job_check_deadline(mtl_job *job);
void mtl_job_fail(mtl_job *job, const mtl_outcome *failure);
void mtl_job_finish(mtl_job *job, uint64_t ended_ns);
uint64_t mtl_job_last_ended(void);
void mtl_job_release(mtl_job *job);

/* group.c: run threadgroups of the job on this thread until none is left or, with a deadline, until
 * the time has come; first the `own_share` that begins the job, which no other thread has. */
void mtl_job_work(mtl_job *job, uint64_t deadline_ns, uint64_t own_share);

/* report.c */
void mtl_report_after_fork(void);

/* memory/objects.c: allocations, by which kernels look up what a pointer points into. */
typedef struct mtl_object {
    uint64_t first, bytes;
    struct mtl_object *next, *previous;
    bool is_mapped; /* the entry of a small buffer precedes its memory */
} mtl_object;
void mtl_object_add(mtl_object *object);
mtl_object *mtl_object_remove(mtl_object *object, const void *memory);
void mtl_objects_after_fork(void);

/* pool.c */
uint32_t mtl_threads(void);
bool mtl_pool_idle(void);
void mtl_pool_append(mtl_job *job);
void mtl_pool_run(mtl_job *job);
bool mtl_pool_wait(mtl_job *job, double timeout_seconds);
bool mtl_pool_completed(mtl_job *job);
bool mtl_pool_cancel(const mtl_job *only);

/* host.c */
bool mtl_host_is_here(void);
bool mtl_host_poll(void);
bool mtl_host_raised(void);

/* watchdog.c */
void mtl_watchdog_hurry(void);
void mtl_watchdog_after_fork(void);

/* memory.c */
typedef struct mtl_private_buffers {
    char *memory; /* NULL if the job has none */
    size_t bytes;
    mtl_launch launch;
} mtl_private_buffers;

const mtl_launch *mtl_private_begin(mtl_private_buffers *self, const mtl_job *job);
void mtl_private_end(mtl_private_buffers *self, const mtl_job *job);
void mtl_private_after_fork(void);

/* launch.c */
void mtl_tickets_after_fork(void);

#endif
