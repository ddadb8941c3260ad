/* Shadow memory of the vector form of checked kernels: its ranges and its words (include/shadow.h). */
#include "sanitizer.h"

#include <string.h>
#include <sys/mman.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

/* Words on both sides of a range, which lanes that are not active may rewrite. */
enum { PADDING = 1024 };

MTL_EXPORT mtl_shadow_state mtl_shadow;

static uint64_t *words;
static size_t capacity;

/* Words of earlier launches are older than the floor of this one: they need not be cleared. */
static bool reserve(size_t count) {
    if (count <= capacity) return true;
    if (words) munmap(words, capacity * sizeof *words);
    words = mmap(NULL, count * sizeof *words, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    capacity = words == MAP_FAILED ? 0 : count;
    if (!capacity) words = NULL;
    return capacity != 0;
}

static size_t words_of(const mtl_shadow_range *range) {
    return (size_t)(range->bytes >> range->unit_bits) + 1 + PADDING;
}

/* Begins a launch whose accesses are in these ranges. The first one is threadgroup memory, wherever it
 * will be. False if there is no memory for words. */
MTL_EXPORT bool mtl_shadow_begin(const mtl_shadow_range *ranges, uint32_t count) {
    mtl_shadow_state *state = &mtl_shadow;
    size_t required = PADDING;
    for (uint32_t i = 0; i < count; i++) required += words_of(&ranges[i]);
    if (count > MTL_SHADOW_RANGES || !reserve(required)) return false;
    uint64_t time = state->time + MTL_SHADOW_TICK;
    memset(state, 0, sizeof *state);
    state->time = state->floor[MTL_DEVICE] = time;
    state->range_count = count;
    uint64_t *next = words + PADDING;
    for (uint32_t i = 0; i < count; i++) {
        state->ranges[i] = ranges[i];
        state->ranges[i].words = (unsigned long long *)next;
        next += words_of(&ranges[i]);
    }
    return true;
}

/* The launch's threadgroup memory is there. */
void mtl_shadow_set_memory(const void *threadgroup_memory) {
    mtl_shadow.ranges[0].first = (uint64_t)(uintptr_t)threadgroup_memory;
}

/* Ends it: whether it may have defects. */
MTL_EXPORT bool mtl_shadow_end(void) {
    return mtl_shadow.alarm || mtl_shadow.arrived != mtl_shadow.threads;
}
