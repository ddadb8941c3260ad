/* Order between threadgroups: only a release and an acquire through an atomic make it.
 *
 * As in C++, a fence before an atomic write releases the accesses before the fence, and a fence after
 * an atomic read acquires what the write that it read from has released. Clocks are those of whole
 * threadgroups: they say up to which epoch the accesses of each threadgroup happen before. */
#include "sanitizer.h"

#include <stdlib.h>
#include <string.h>

typedef uint32_t clock_entry; /* an epoch plus 1; 0 = no access happens before */

typedef struct sync_object {
    uint64_t address;
    clock_entry *clock;
} sync_object;

static struct {
    uint32_t groups; /* entries of a clock; threadgroups are counted from 1 */
    clock_entry *known;    /* what happens before the accesses of this threadgroup */
    clock_entry *pending;  /* what its atomics have read, which a fence makes known */
    clock_entry *released; /* what its atomics release; NULL before a fence */
    bool has_released;
    sync_object *objects;
    size_t count, capacity;
} clocks;

void mtl_clocks_begin(uint32_t groups) { clocks.groups = groups + 1; }

void mtl_clocks_clear(void) {
    for (size_t i = 0; i < clocks.count; i++) free(clocks.objects[i].clock);
    free(clocks.objects);
    free(clocks.known);
    free(clocks.pending);
    free(clocks.released);
    memset(&clocks, 0, sizeof clocks);
}

static void join(clock_entry *into, const clock_entry *from) {
    for (uint32_t i = 0; i < clocks.groups; i++) {
        if (into[i] < from[i]) into[i] = from[i];
    }
}

static clock_entry *new_clock(void) { return calloc(clocks.groups, sizeof(clock_entry)); }

/* A threadgroup begins. */
void mtl_clocks_enter(void) {
    clocks.has_released = false;
    if (!clocks.known) return; /* no fence so far */
    size_t bytes = clocks.groups * sizeof(clock_entry);
    memset(clocks.known, 0, bytes);
    memset(clocks.pending, 0, bytes);
}

void mtl_clocks_fence(uint32_t group, uint32_t epoch, bool releases, bool acquires) {
    if (!clocks.known) {
        clocks.known = new_clock();
        clocks.pending = new_clock();
        clocks.released = new_clock();
        if (!clocks.known || !clocks.pending || !clocks.released) {
            free(clocks.known), free(clocks.pending), free(clocks.released);
            clocks.known = clocks.pending = clocks.released = NULL;
            return;
        }
    }
    if (acquires) join(clocks.known, clocks.pending);
    if (releases) {
        memcpy(clocks.released, clocks.known, clocks.groups * sizeof(clock_entry));
        clocks.released[group] = epoch + 1;
        clocks.has_released = true;
    }
}

static sync_object *object_at(uint64_t address, bool make) {
    for (size_t i = 0; i < clocks.count; i++) {
        if (clocks.objects[i].address == address) return &clocks.objects[i];
    }
    if (!make) return NULL;
    if (clocks.count == clocks.capacity) {
        size_t capacity = 2 * clocks.capacity + 16;
        sync_object *grown = realloc(clocks.objects, capacity * sizeof *grown);
        if (!grown) return NULL;
        clocks.objects = grown;
        clocks.capacity = capacity;
    }
    clock_entry *clock = new_clock();
    if (!clock) return NULL;
    clocks.objects[clocks.count] = (sync_object){address, clock};
    return &clocks.objects[clocks.count++];
}

/* An atomic access of device memory. */
void mtl_clocks_atomic(uint64_t address, bool reads, bool writes) {
    if (!clocks.known) return; /* no fence so far */
    const sync_object *object = object_at(address, writes && clocks.has_released);
    if (!object) return;
    if (reads) join(clocks.pending, object->clock);
    if (writes && clocks.has_released) join(object->clock, clocks.released);
}

/* Whether an access of another threadgroup happens before the current one. */
bool mtl_clocks_happens_before(const mtl_access *access) {
    return clocks.known && access->epoch < clocks.known[access->group];
}
