/* The objects that pointers in memory point into: those that a launch was given, and buffers.
 *
 * Kernels that follow such pointers look up the extent of each (compiler/bounds/objects.py). An
 * address in neither, such as of a thread's own variables, counts as in an object without end.
 */
#include <stdlib.h>

#include "../fibre.h"

typedef struct extent {
    uint64_t first, bytes;
} extent;

/* What a launch passes: objects sorted by address, and by size. */
typedef struct table {
    uint64_t count;
    extent objects[];
} table;

enum { NULL_PAGE = 4096 };

static const extent unknown = {0, UINT64_MAX / 4};

/* Buffers come and go often, and are looked up rarely: they are in lists, and sorted when a lookup
 * needs it. */
static struct {
    pthread_mutex_t lock;
    mtl_object *first[2]; /* small buffers, and those that are mapped */
    uint64_t count;
    table *sorted; /* NULL after a change */
} buffers = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Each thread looks up one pointer twice. */
static _Atomic uint64_t version = 1; /* changes with the buffers */
static MTL_THREAD_LOCAL struct {
    uint64_t version;
    extent latest;
} cache;

static void changed(void) {
    free(buffers.sorted);
    buffers.sorted = NULL;
    atomic_fetch_add(&version, 1);
}

void mtl_object_add(mtl_object *object) {
    pthread_mutex_lock(&buffers.lock);
    mtl_object **list = &buffers.first[object->is_mapped];
    object->next = *list;
    if (*list) (*list)->previous = object;
    *list = object;
    buffers.count++;
    changed();
    pthread_mutex_unlock(&buffers.lock);
}

/* Remove the entry of a buffer, which is searched for if it is NULL; the entry. */
mtl_object *mtl_object_remove(mtl_object *object, const void *memory) {
    pthread_mutex_lock(&buffers.lock);
    if (!object) {
        object = buffers.first[1];
        while (object && object->first != (uintptr_t)memory) object = object->next;
    }
    if (object) {
        if (object->next) object->next->previous = object->previous;
        if (object->previous) {
            object->previous->next = object->next;
        } else {
            buffers.first[object->is_mapped] = object->next;
        }
        buffers.count--;
        changed();
    }
    pthread_mutex_unlock(&buffers.lock);
    return object;
}

void mtl_objects_after_fork(void) { pthread_mutex_init(&buffers.lock, NULL); }

static int by_address(const void *left, const void *right) {
    const extent *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* NULL if there is no memory for the table. */
static const table *sorted_buffers(void) {
    if (buffers.sorted) return buffers.sorted;
    table *result = malloc(sizeof *result + buffers.count * sizeof *result->objects);
    if (!result) return NULL;
    result->count = 0;
    for (int list = 0; list < 2; list++) {
        for (mtl_object *each = buffers.first[list]; each; each = each->next)
            result->objects[result->count++] = (extent){each->first, each->bytes};
    }
    qsort(result->objects, result->count, sizeof *result->objects, by_address);
    return buffers.sorted = result;
}

/* How many objects begin at an address or before it. */
static uint64_t begun_at(const table *objects, uint64_t address) {
    uint64_t low = 0, high = objects ? objects->count : 0;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (objects->objects[middle].first <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Of a launch's objects, which may overlap, the smallest of those that begin last and contain an
 * address. */
static const extent *in_launch(const table *objects, uint64_t address) {
    const extent *best = NULL;
    for (uint64_t i = begun_at(objects, address); i-- > 0;) {
        const extent *each = &objects->objects[i];
        if (best && each->first != best->first) break;
        if (address - each->first < each->bytes) best = each;
    }
    return best;
}

static extent in_buffers(uint64_t address) {
    uint64_t current = atomic_load_explicit(&version, memory_order_acquire);
    if (cache.version == current && address - cache.latest.first < cache.latest.bytes)
        return cache.latest;
    mtl_context *context = mtl_current;
    context->holds_lock = true;
    pthread_mutex_lock(&buffers.lock);
    const table *sorted = sorted_buffers();
    uint64_t begun = begun_at(sorted, address);
    extent result = begun ? sorted->objects[begun - 1] : (extent){0, 0};
    pthread_mutex_unlock(&buffers.lock);
    mtl_release_lock(context);
    if (address - result.first >= result.bytes) return unknown; /* which no other address has */
    cache.version = current;
    cache.latest = result;
    return result;
}

static extent object_at(uint64_t address, uint64_t launch) {
    if (address < NULL_PAGE) return (extent){address, 0};
    const extent *of_launch = in_launch((const table *)(uintptr_t)launch, address);
    return of_launch ? *of_launch : in_buffers(address);
}

/* Where an address is in its object; half of the extent if that is unknown. */
MTL_EXPORT uint64_t mtl_offset_in_object(uint64_t address, uint64_t launch) {
    extent of = object_at(address, launch);
    return of.bytes == unknown.bytes ? unknown.bytes / 2 : address - of.first;
}

MTL_EXPORT uint64_t mtl_object_extent(uint64_t address, uint64_t launch) {
    return object_at(address, launch).bytes;
}
