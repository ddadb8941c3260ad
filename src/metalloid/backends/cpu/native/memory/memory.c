/* Memory of buffers: zero-filled, aligned to 64 bytes, and refused if the machine has not got
 * it; and copies of buffers that belong to one thread of the system. */
#include "../runtime.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

/* From this size on, buffers have pages of their own, which the system zeroes when they are
 * touched. */
static const size_t mapped_bytes = (size_t)256 << 10;

static _Atomic size_t allocated_bytes;

/* A container's limit, in the two versions of the interface; SIZE_MAX if there is none. */
static size_t container_bytes(void) {
    static const char *const files[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char text[32] = {0};
        int file = open(files[i], O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        bool known = read(file, text, sizeof text - 1) > 0 && text[0] >= '0' && text[0] <= '9';
        close(file);
        if (known) return (size_t)strtoull(text, NULL, 10);
    }
    return SIZE_MAX;
}

static size_t physical_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_size > 0 ? (size_t)pages * (size_t)page_size : SIZE_MAX;
}

static size_t memory_limit;

__attribute__((constructor)) static void find_memory_limit(void) {
    size_t machine = physical_bytes(), container = container_bytes();
    memory_limit = machine < container ? machine : container;
}

/* Systems promise more memory than they have and kill the process that believes them. Counts bytes
 * against the memory that there is instead. */
static bool reserve(size_t bytes) {
    size_t before = atomic_fetch_add(&allocated_bytes, bytes);
    if (bytes <= memory_limit && before <= memory_limit - bytes) return true;
    atomic_fetch_sub(&allocated_bytes, bytes);
    return false;
}

static const size_t huge_page = (size_t)2 << 20;

/* The bytes of a mapping: whole huge pages, if that adds at most an eighth. */
static size_t mapping_bytes(size_t bytes) {
#ifdef MADV_HUGEPAGE
    size_t padding = -bytes % huge_page;
    bool fits = bytes <= SIZE_MAX - padding;
    if (fits && bytes >= 2 * huge_page && padding <= bytes / 8) return bytes + padding;
#endif
    return bytes;
}

static void *map_pages(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void *map(size_t bytes) {
#ifdef MADV_HUGEPAGE
    /* Filling fresh small pages costs more than most kernels that do it, and they miss the TLB
     * oftener. Linux aligns mappings to huge pages from 6.7 on, if their size is a multiple. */
    if (bytes >= 2 * huge_page) {
        char *memory = map_pages(bytes + huge_page);
        if (!memory) return NULL;
        size_t before = -(uintptr_t)memory % huge_page;
        if (before) munmap(memory, before);
        memory += before;
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        munmap(memory + (bytes + page - 1) / page * page, huge_page - before);
        madvise(memory, bytes, MADV_HUGEPAGE);
        return memory;
    }
#endif
    return map_pages(bytes);
}

/* The entry of a small buffer precedes its memory. */
enum { HEADER = 64 };

static void *allocate_small(size_t bytes) {
    void *header;
    size_t nonzero_bytes = bytes ? bytes : 1;
    if (posix_memalign(&header, 64, HEADER + nonzero_bytes) != 0) return NULL;
    memset(header, 0, HEADER + nonzero_bytes);
    mtl_object *object = header;
    char *memory = (char *)header + HEADER;
    *object = (mtl_object){.first = (uintptr_t)memory, .bytes = bytes};
    mtl_object_add(object);
    return memory;
}

static void *allocate_large(size_t mapped, size_t bytes) {
    mtl_object *object = malloc(sizeof *object);
    void *memory = object ? map(mapped) : NULL;
    if (!memory) {
        free(object);
        return NULL;
    }
    *object = (mtl_object){.first = (uintptr_t)memory, .bytes = bytes, .is_mapped = true};
    mtl_object_add(object);
    return memory;
}

/* NULL if there is not enough memory. */
MTL_EXPORT void *mtl_allocate(size_t bytes) {
    size_t mapped = mapping_bytes(bytes);
    if (!reserve(mapped)) return NULL;
    void *memory = mapped >= mapped_bytes ? allocate_large(mapped, bytes) : allocate_small(bytes);
    if (!memory) atomic_fetch_sub(&allocated_bytes, mapped);
    return memory;
}

/* `bytes` as they were asked for. */
MTL_EXPORT void mtl_free(void *memory, size_t bytes) {
    if (!memory) return;
    bytes = mapping_bytes(bytes);
    if (bytes >= mapped_bytes) {
        free(mtl_object_remove(NULL, memory));
        munmap(memory, bytes);
    } else {
        free(mtl_object_remove((mtl_object *)((char *)memory - HEADER), memory));
    }
    atomic_fetch_sub(&allocated_bytes, bytes);
}

/* ---- private buffers: those that a launch only adds floats to; each thread that works on it has a copy,
 * which begins as zeros, and which is added to the buffer when the thread leaves ---- */

static const size_t alignment = 64;

static size_t padded(uint64_t bytes) { return (bytes + alignment - 1) & ~(alignment - 1); }

/* The launch with the addresses of the copies, if it has any; NULL if there is no memory for them. */
const mtl_launch *mtl_private_begin(mtl_private_buffers *self, const mtl_job *job) {
    self->memory = NULL;
    if (!job->private_count) return &job->launch;
    const mtl_private_buffer *buffers = job->private_buffers;
    size_t words = job->argument_count * sizeof(void *);
    self->bytes = padded(words);
    for (uint32_t i = 0; i < job->private_count; i++) self->bytes += padded(buffers[i].bytes);
    self->memory = mtl_allocate(self->bytes);
    if (!self->memory) return NULL;
    void **arguments = (void **)self->memory;
    memcpy(arguments, job->launch.arguments, words);
    char *copy = self->memory + padded(words);
    for (uint32_t i = 0; i < job->private_count; i++) {
        arguments[buffers[i].word] = copy;
        copy += padded(buffers[i].bytes);
    }
    self->launch = job->launch;
    self->launch.arguments = arguments;
    return &self->launch;
}

/* Adds to a number that other threads may add to. */
static void add_one(float *at, float value) {
    _Atomic uint32_t *bits = (_Atomic uint32_t *)at;
    uint32_t old = atomic_load_explicit(bits, memory_order_relaxed), new;
    float sum;
    do {
        memcpy(&sum, &old, sizeof sum);
        sum += value;
        memcpy(&new, &sum, sizeof new);
    } while (!atomic_compare_exchange_weak_explicit(bits, &old, new, memory_order_relaxed,
                                                    memory_order_relaxed));
}

/* The same with two numbers, at a multiple of their size. */
static void add_two(float *at, const float *values) {
    _Atomic uint64_t *bits = (_Atomic uint64_t *)at;
    uint64_t old = atomic_load_explicit(bits, memory_order_relaxed), new;
    float sums[2];
    do {
        memcpy(sums, &old, sizeof sums);
        sums[0] += values[0];
        sums[1] += values[1];
        memcpy(&new, sums, sizeof new);
    } while (!atomic_compare_exchange_weak_explicit(bits, &old, new, memory_order_relaxed,
                                                    memory_order_relaxed));
}

static void add_all(float *to, const float *values, size_t count) {
    size_t i = 0;
    if (count > 0 && (uintptr_t)to % sizeof(uint64_t) != 0) {
        if (values[0] != 0) add_one(to, values[0]);
        i = 1;
    }
    for (; i + 2 <= count; i += 2) {
        if (values[i] != 0 || values[i + 1] != 0) add_two(to + i, values + i);
    }
    if (i < count && values[i] != 0) add_one(to + i, values[i]);
}

/* Adds the copies to the buffers, unless the launch has failed, and frees them. */
void mtl_private_end(mtl_private_buffers *self, const mtl_job *job) {
    if (!self->memory) return;
    bool succeeded = !atomic_load_explicit(&job->cancelled, memory_order_relaxed);
    for (uint32_t i = 0; succeeded && i < job->private_count; i++) {
        const mtl_private_buffer *buffer = &job->private_buffers[i];
        add_all(job->launch.arguments[buffer->word], self->launch.arguments[buffer->word],
                buffer->bytes / sizeof(float));
    }
    mtl_free(self->memory, self->bytes);
}
