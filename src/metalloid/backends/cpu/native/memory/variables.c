/* Threadgroup variables of static size.
 *
 * They are thread-local in the kernel's object, for a system thread runs one threadgroup at a time.
 * The object is compiled with emulated thread-local storage: each variable has a control block, and
 * its address comes from the function below. (clang's native thread-local storage assumes that asking for the address
 * keeps all vector registers. With AVX-512 the C library's function does not.)
 */
#include <stdlib.h>
#include <string.h>

#include "../fibre.h"

/* Laid out by clang. */
typedef struct control_block {
    size_t size, alignment;
    void *unused, *initial_value; /* MSL leaves threadgroup memory undefined at first */
} control_block;

struct mtl_variable {
    const control_block *block;
    void *memory;
};

static _Atomic uint32_t unloads;

/* Code was unloaded: other kernels may come to lie where it was. */
MTL_EXPORT void mtl_forget_code(void) { atomic_fetch_add(&unloads, 1); }

/* Drops the variables of the kernel that this thread ran before, if this is another one. */
void mtl_variables_prepare(mtl_context *context, mtl_entry *entry) {
    uint32_t seen = atomic_load_explicit(&unloads, memory_order_relaxed);
    if (context->variables_of == entry && context->seen_unloads == seen) return;
    mtl_variables_reset(context);
    context->variables_of = entry;
    context->seen_unloads = seen;
}

void mtl_variables_reset(mtl_context *context) {
    for (uint32_t i = 0; i < context->variable_count; i++) free(context->variables[i].memory);
    context->variable_count = 0;
}

static void *add_variable(mtl_context *context, const control_block *block) {
    if (context->variable_count == context->variable_capacity) {
        uint32_t capacity = 2 * context->variable_capacity + 4;
        void *grown = realloc(context->variables, capacity * sizeof *context->variables);
        if (!grown) __builtin_trap(); /* reported as a fault of the kernel, which has no other means of reporting */
        context->variables = grown;
        context->variable_capacity = capacity;
    }
    void *memory;
    size_t alignment = block->alignment < 64 ? 64 : block->alignment;
    if (posix_memalign(&memory, alignment, block->size) != 0) __builtin_trap();
    memset(memory, 0, block->size);
    context->variables[context->variable_count++] = (mtl_variable){block, memory};
    return memory;
}

MTL_EXPORT void *__emutls_get_address(const control_block *block) {
    mtl_context *context = mtl_current;
    for (uint32_t i = 0; i < context->variable_count; i++) {
        if (context->variables[i].block == block) return context->variables[i].memory;
    }
    context->holds_lock = true; /* the C library's, for memory */
    void *memory = add_variable(context, block);
    mtl_release_lock(context);
    return memory;
}

/* Whether an address is in a variable, and its offset there. */
bool mtl_variable_at(const mtl_context *context, uint64_t address, uint64_t *offset) {
    for (uint32_t i = 0; i < context->variable_count; i++) {
        const mtl_variable *variable = &context->variables[i];
        *offset = address - (uint64_t)(uintptr_t)variable->memory;
        if (*offset < variable->block->size) return true;
    }
    return false;
}
