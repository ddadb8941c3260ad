/* Memory of buffers: zero-filled, aligned to 64 bytes, and refused if the machine has not got
 * it; and copies of buffers that belong to one thread of the system. */
#include "../runtime.h"

#include <fcntl.h>
#include <sched.h>
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

/* Memory of earlier copies, which is all zeros after its size: fresh pages take longer than many
 * launches add. */
enum { SPARES = 16 };
static const size_t max_spare_bytes = (size_t)8 << 20;
static _Atomic(size_t *) spares[SPARES];

static char *take_zeros(size_t bytes, size_t *available) {
    for (int i = 0; i < SPARES && bytes <= max_spare_bytes; i++) {
        size_t *memory = atomic_exchange(&spares[i], NULL);
        if (!memory) continue;
        *available = *memory;
        if (bytes <= *memory) return (char *)memory;
        mtl_free(memory, *memory);
    }
    *available = bytes;
    size_t *memory = mtl_allocate(bytes);
    if (memory) *memory = bytes;
    return (char *)memory;
}

static void give_zeros(char *memory, size_t bytes) {
    for (int i = 0; i < SPARES && bytes <= max_spare_bytes; i++) {
        size_t *none = NULL;
        if (atomic_compare_exchange_strong(&spares[i], &none, (size_t *)memory)) return;
    }
    mtl_free(memory, bytes);
}

/* The launch with the addresses of the copies, if it has any; NULL if there is no memory for them. */
const mtl_launch *mtl_private_begin(mtl_private_buffers *self, const mtl_job *job) {
    self->memory = NULL;
    if (!job->private_count) return &job->launch;
    const mtl_private_buffer *buffers = job->private_buffers;
    size_t words = job->argument_count * sizeof(void *), bytes = alignment + padded(words);
    for (uint32_t i = 0; i < job->private_count; i++) bytes += padded(buffers[i].bytes);
    self->memory = take_zeros(bytes, &self->bytes);
    if (!self->memory) return NULL;
    void **arguments = (void **)(self->memory + alignment);
    memcpy(arguments, job->launch.arguments, words);
    char *copy = (char *)arguments + padded(words);
    for (uint32_t i = 0; i < job->private_count; i++) {
        arguments[buffers[i].word] = copy;
        copy += padded(buffers[i].bytes);
    }
    self->launch = job->launch;
    self->launch.arguments = arguments;
    return &self->launch;
}

/* Launches run one after another, so only the threads of one add to a buffer, and they lock what
 * they add to: a locked instruction for each number would take longer than most launches. */
enum { LOCKS = 64, LOCKED_BYTES = 1 << 14 };
static atomic_flag locks[LOCKS];

/* The child of a fork has none of the threads that held them. */
void mtl_private_after_fork(void) {
    for (int i = 0; i < LOCKS; i++) atomic_flag_clear(&locks[i]);
}

/* Adds and clears numbers that lie in one locked range. */
static void add_range(float *restrict to, float *restrict values, size_t count) {
    atomic_flag *lock = &locks[(uintptr_t)to / LOCKED_BYTES % LOCKS];
    while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire)) sched_yield();
    for (size_t i = 0; i < count; i++) {
        to[i] += values[i];
        values[i] = 0;
    }
    atomic_flag_clear_explicit(lock, memory_order_release);
}

static void add_all(float *to, float *values, size_t count) {
    while (count) {
        size_t left = (LOCKED_BYTES - (uintptr_t)to % LOCKED_BYTES) / sizeof(float);
        size_t now = count < left ? count : left;
        add_range(to, values, now);
        to += now, values += now, count -= now;
    }
}

/* Adds the copies to the buffers, unless the launch has failed. */
void mtl_private_end(mtl_private_buffers *self, const mtl_job *job) {
    if (!self->memory) return;
    if (atomic_load_explicit(&job->cancelled, memory_order_relaxed)) {
        mtl_free(self->memory, self->bytes);
        return;
    }
    for (uint32_t i = 0; i < job->private_count; i++) {
        const mtl_private_buffer *buffer = &job->private_buffers[i];
        add_all(job->launch.arguments[buffer->word], self->launch.arguments[buffer->word],
                buffer->bytes / sizeof(float));
    }
    memset(self->memory + alignment, 0, job->argument_count * sizeof(void *));
    give_zeros(self->memory, self->bytes);
}
