/* Stacks and the per-thread context that owns them. */
#include "fibre.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

MTL_THREAD_LOCAL mtl_context *mtl_current;

static pthread_key_t context_key; /* for its destructor: the context goes when its thread ends */

#ifdef __linux__
/* Whether madvise made a guard of the memory. Emulators answer any advice with success, even the
 * advice to read what must not be read. */
static bool guard_by_advice(char *start) {
    enum { GUARD_INSTALL = 102, POPULATE_READ = 22 }; /* Linux 6.13 and 5.14 */
    return madvise(start, MTL_STACK_GUARD, GUARD_INSTALL) == 0 &&
           madvise(start, MTL_STACK_GUARD, POPULATE_READ) != 0;
}
#else
static bool guard_by_advice(char *start) {
    (void)start;
    return false;
}
#endif

/* A guard by madvise costs no mapping of its own. One by mprotect costs two, and a process may only
 * have 65530 (vm.max_map_count): 32 threads with 1024 fibres each. */
static bool guard(char *start) {
    return guard_by_advice(start) || mprotect(start, MTL_STACK_GUARD, PROT_NONE) == 0;
}

/* Maps `count` stacks of `size` bytes side by side, each above its guard. Pages are only taken when
 * touched. Returns NULL if memory or mappings have run out. */
static char *map_stacks(uint32_t count, size_t size) {
    size_t stride = MTL_STACK_GUARD + size;
    char *block = mmap(NULL, count * stride, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) return NULL;
#ifdef MADV_NOHUGEPAGE
    madvise(block, count * stride, MADV_NOHUGEPAGE); /* the top page of a stack is all most need */
#endif
    for (uint32_t i = 0; i < count; i++) {
        if (!guard(block + i * stride)) {
            munmap(block, count * stride);
            return NULL;
        }
    }
    return block;
}

/* Gives the memory of an overflowed stack back. */
void mtl_stack_discard(const mtl_stack *stack) {
    madvise(stack->low, stack->size, MADV_DONTNEED);
}

static void unmap_stack(mtl_stack stack) {
    if (stack.low) munmap(stack.low - MTL_STACK_GUARD, stack.size + MTL_STACK_GUARD);
}

static void context_destroy(void *pointer) {
    mtl_context *context = pointer;
    mtl_watchdog_remove(context);
    mtl_current = NULL;
    unmap_stack(context->kernel_stack);
    for (uint32_t i = 0; i < context->fibre_count; i++) unmap_stack(context->fibres[i].stack);
    free(context->fibres);
    free(context->simdgroups);
    free(context->threadgroup_memory);
    mtl_variables_reset(context);
    free(context->variables);
    mtl_signal_stack_remove(context->signal_stack);
    free(context->nested_signal_stack);
    free(context);
}

__attribute__((constructor)) static void create_context_key(void) {
    pthread_key_create(&context_key, context_destroy);
}

static mtl_context *context_create(void) {
    mtl_context *context = calloc(1, sizeof *context);
    if (!context) return NULL;
    char *block = map_stacks(1, MTL_KERNEL_STACK);
    if (!block) {
        free(context);
        return NULL;
    }
    context->kernel_stack = (mtl_stack){block + MTL_STACK_GUARD, MTL_KERNEL_STACK};
    context->signal_stack = mtl_signal_stack_install();
    if (mtl_host_is_here()) context->nested_signal_stack = mtl_signal_stack_allocate();
    pthread_setspecific(context_key, context);
    mtl_current = context;
    mtl_watchdog_add(context);
    return context;
}

/* The context of the calling thread; NULL if there is no memory for one. */
mtl_context *mtl_context_get(void) {
    mtl_context *context = mtl_current;
    return context ? context : context_create();
}

/* Makes sure that `count` fibres exist. They are kept until the thread ends. */
bool mtl_context_reserve_fibres(mtl_context *context, uint32_t count) {
    uint32_t have = context->fibre_count;
    if (count <= have) return true;
    uint32_t required = (count + MTL_SIMD_WIDTH - 1) / MTL_SIMD_WIDTH * MTL_SIMD_WIDTH;

    mtl_fibre *fibres = realloc(context->fibres, required * sizeof *fibres);
    if (!fibres) return false;
    context->fibres = fibres;
    size_t simdgroup_bytes = required / MTL_SIMD_WIDTH * sizeof(mtl_simdgroup);
    mtl_simdgroup *simdgroups = realloc(context->simdgroups, simdgroup_bytes);
    if (!simdgroups) return false;
    context->simdgroups = simdgroups;
    char *block = map_stacks(required - have, MTL_FIBRE_STACK);
    if (!block) return false;

    memset(fibres + have, 0, (required - have) * sizeof *fibres);
    for (uint32_t i = have; i < required; i++, block += MTL_STACK_GUARD + MTL_FIBRE_STACK) {
        fibres[i].lane = (uint16_t)(i % MTL_SIMD_WIDTH);
        fibres[i].stack = (mtl_stack){block + MTL_STACK_GUARD, MTL_FIBRE_STACK};
    }
    context->fibre_count = required;
    return true;
}

/* Makes sure that `bytes` of threadgroup memory exist. */
bool mtl_context_reserve_memory(mtl_context *context, size_t bytes) {
    if (bytes <= context->threadgroup_capacity) return true;
    void *memory;
    if (posix_memalign(&memory, 128, bytes) != 0) return false;
    free(context->threadgroup_memory);
    context->threadgroup_memory = memory;
    context->threadgroup_capacity = bytes;
    return true;
}

/* Lays out the stack so that mtl_switch to the returned stack pointer calls function(argument).
 *
 * The colour of a fibre is its index. Without it the tops of all stacks would lie at the same
 * offset in a page and so compete for the same few cache lines. */
void *mtl_stack_prepare(const mtl_stack *stack, size_t colour, void (*function)(void *),
                        void *argument) {
    enum { COLOUR_BYTES = 192, PAGE = 4096 };
    uintptr_t top = (uintptr_t)stack->low + stack->size - colour * COLOUR_BYTES % PAGE;
#if defined(__x86_64__)
    /* In the order of mtl_switch: r15, r14, r13, r12, rbx, rbp, return address. Nine words, so that
     * the stack pointer is a multiple of 16 once the seven are popped, as a call requires. */
    void **frame = (void **)top - 9;
    frame[2] = argument;
    *(void (**)(void *))&frame[3] = function;
    frame[5] = NULL; /* ends the chain of frame pointers */
    *(void (**)(void))&frame[6] = mtl_stack_start;
#else
    /* In the order of mtl_switch: x19 ... x30, d8 ... d15. */
    void **frame = (void **)top - 20;
    *(void (**)(void *))&frame[0] = function;
    frame[1] = argument;
    frame[10] = NULL; /* x29 ends the chain of frame pointers */
    *(void (**)(void))&frame[11] = mtl_stack_start;
#endif
    return frame;
}
