/* Stacks, fibres, and what every operating system thread keeps in order to run kernels. */
#ifndef METALLOID_CPU_FIBRE_H
#define METALLOID_CPU_FIBRE_H

#include <pthread.h>
#include <signal.h>

#include "runtime.h"

/* What the watchdog sends to threads that run kernels. Programs ignore it by default. */
#define MTL_VISIT SIGURG

enum { MTL_SIMD_WIDTH = 32, MTL_QUAD_WIDTH = 4 };
enum { MTL_LOOPS = 12 }; /* around a call; what is said of loops further inside is not kept */

/* Memory for a stack, [low, low + size), above a guard of MTL_STACK_GUARD inaccessible bytes. */
typedef struct mtl_stack {
    char *low;
    size_t size;
} mtl_stack;

#define MTL_STACK_GUARD ((size_t)64 << 10)
#define MTL_KERNEL_STACK ((size_t)8 << 20)
#define MTL_FIBRE_STACK ((size_t)256 << 10)

struct mtl_exchange;
/* Computes the results of the active lanes from what they have published. Returns a status. */
typedef int32_t mtl_rule(struct mtl_exchange *exchange);

/* One thread of a threadgroup. */
typedef struct mtl_fibre {
    void *stack_pointer;
    const void *site; /* where it waits: the return address of the __msl_ function */
    mtl_rule *rule;   /* the simdgroup function it waits in */
    uint64_t turn;    /* equal for the same call; the lowest of a simdgroup goes on first */
    uint32_t number;  /* what __msl_site said about the next call; 0 = nothing */
    uint32_t depth;   /* loops around it that __msl_iteration told of: */
    uint32_t loops[MTL_LOOPS][2]; /* the number of the first call in the loop, the round */
    uint64_t value, filling, added, result;
    uint16_t operand, modulo;
    uint16_t width; /* lanes that exchange with each other: simdgroup or quad */
    uint16_t lane;
    uint32_t position[3];
    mtl_stack stack;
} mtl_fibre;

/* A simdgroup; one bit per lane. A lane that is in none of the other masks is running or ready. */
typedef struct mtl_simdgroup {
    mtl_fibre *lanes;
    uint32_t members; /* fewer than 32 in the last simdgroup of a threadgroup */
    uint32_t finished, at_barrier, at_exchange;
    uint32_t ready; /* lanes to run before the scheduler looks again */
} mtl_simdgroup;

typedef struct mtl_exchange {
    mtl_fibre *lanes;
    uint32_t active;
    uint32_t width;
    uint32_t failing_lane; /* set by a rule that fails: whose operand was wrong, */
    uint32_t wrong_value;  /* and the operand */
} mtl_exchange;

/* Where the kernel called the function in which this stands: an address inside of the call
 * instruction, as what follows it may be on another line of the source. */
#define MTL_CALL_SITE ((void *)((char *)__builtin_return_address(0) - 1))

typedef struct mtl_fault {
    int signal; /* 0 = none, SIGABRT = a failed assertion */
    bool stack_overflow;
    uint64_t address, code;
    int32_t status; /* what the code found out by itself, and in which thread; 0 = a signal */
    uint32_t thread[3];
    const char *condition, *file; /* MTL_ASSERTION */
    uint32_t line;
    uint32_t wrong_value;       /* MTL_LANE_OUT_OF_RANGE, MTL_BAD_MODULO, MTL_OUTSIDE */
    uint32_t arrived, expected; /* MTL_BARRIER_MISSED, MTL_BARRIERS_DIFFER; arrived: MTL_OUTSIDE */
    uint64_t extent;            /* MTL_OUTSIDE */
} mtl_fault;

typedef struct mtl_variable mtl_variable; /* memory/variables.c */

/* Belongs to one operating system thread. */
typedef struct mtl_context {
    void *scheduler; /* saved stack pointer of the thread itself while kernel code runs */
    volatile bool in_kernel;  /* whether the thread is on a kernel's stack */
    volatile bool holds_lock; /* in a function of the runtime that must not be abandoned */
    volatile bool is_visited; /* the watchdog came at such a time, or between two fibres */
    volatile bool in_handler; /* a signal handler of Python's runs while a kernel waits for it */
    mtl_fault fault;
    mtl_job *job;
    mtl_range range; /* the threadgroup being run */

    mtl_stack kernel_stack; /* LOOP mode */

    mtl_fibre *fibres; /* FIBRE mode */
    uint32_t fibre_count;
    mtl_simdgroup *simdgroups;
    mtl_simdgroup *simdgroup; /* being run */
    mtl_fibre *running;       /* NULL in LOOP mode */

    char *threadgroup_memory;
    size_t threadgroup_capacity;
    mtl_entry *variables_of; /* the kernel that the variables belong to */
    uint32_t seen_unloads;   /* of code, when they were made */
    mtl_variable *variables;
    uint32_t variable_count, variable_capacity;
    void *signal_stack; /* NULL if the thread brought its own */
    void *nested_signal_stack; /* for signals while in_handler; of Python's main thread only */

    /* watchdog.c */
    struct mtl_context *next;
    pthread_t thread;
    _Atomic bool working;    /* in mtl_job_work */
    _Atomic uint32_t shifts; /* calls of mtl_job_work */
    bool was_working;        /* at the watchdog's last look */
    uint32_t seen_shifts;
} mtl_context;

/* Loading the runtime into a running process leaves a few words of the fast static model; musl
 * has no such reserve but allocates dynamic thread-local memory before any signal handler can
 * need it. */
#ifdef __GLIBC__
#define MTL_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define MTL_THREAD_LOCAL _Thread_local
#endif
extern MTL_THREAD_LOCAL mtl_context *mtl_current; /* NULL until the thread first runs a kernel */

/* A function of the runtime that kernels call may be abandoned again. If the watchdog came meanwhile, it
 * comes again. */
static inline void mtl_release_lock(mtl_context *context) {
    context->holds_lock = false;
    if (context->is_visited) pthread_kill(context->thread, MTL_VISIT);
}

/* fibre.c */
mtl_context *mtl_context_get(void);
bool mtl_context_reserve_fibres(mtl_context *context, uint32_t count);
bool mtl_context_reserve_memory(mtl_context *context, size_t bytes);
void *mtl_stack_prepare(const mtl_stack *stack, size_t colour, void (*function)(void *),
                        void *argument);
void mtl_stack_discard(const mtl_stack *stack);

/* memory/variables.c */
void mtl_variables_prepare(mtl_context *context, mtl_entry *entry);
void mtl_variables_reset(mtl_context *context);
bool mtl_variable_at(const mtl_context *context, uint64_t address, uint64_t *offset);

/* watchdog.c */
void mtl_watchdog_add(mtl_context *context);
void mtl_watchdog_remove(mtl_context *context);
void mtl_watchdog_enter(mtl_context *context, uint64_t limit_ns);
void mtl_watchdog_leave(mtl_context *context);

/* group.c */
bool mtl_attend(mtl_context *context);

/* fault.c */
void *mtl_signal_stack_allocate(void);
void *mtl_signal_stack_install(void);
void mtl_signal_stack_remove(void *stack);

/* switch.S */
void mtl_switch(void **save, void *target);
void mtl_call_on(void *stack_pointer, void (*function)(void *), void *argument);
void mtl_resume(void);
void mtl_stack_start(void);

/* Kernels run with default rounding, all exceptions masked and denormals kept, whatever the host
 * thread has set, so that results do not depend on the thread. */
typedef struct mtl_float_mode {
    uint64_t control;
    uint16_t x87_control;
} mtl_float_mode;

static inline void mtl_float_mode_set(mtl_float_mode mode) {
#if defined(__x86_64__)
    uint32_t control = (uint32_t)mode.control;
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" ::"m"(control), "m"(mode.x87_control));
#else
    __asm__ volatile("msr fpcr, %0" ::"r"(mode.control));
#endif
}

static inline mtl_float_mode mtl_float_mode_enter(void) {
    mtl_float_mode host = {0, 0};
#if defined(__x86_64__)
    uint32_t control;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(control), "=m"(host.x87_control));
    host.control = control;
    if ((control & 0xffc0u) == 0x1f80u && host.x87_control == 0x037f) return host;
    mtl_float_mode_set((mtl_float_mode){0x1f80, 0x037f});
#else
    __asm__ volatile("mrs %0, fpcr" : "=r"(host.control));
    if (host.control != 0) mtl_float_mode_set((mtl_float_mode){0, 0});
#endif
    return host;
}

#endif
