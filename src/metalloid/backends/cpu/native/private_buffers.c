/* Copies of buffers that a launch only adds floats to: each thread that works on it has its own, which
 * begins as zeros, and which is added to the buffer when the thread leaves. */
#include "private_buffers.h"

#include <string.h>

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
    bool is_wanted = !atomic_load_explicit(&job->cancelled, memory_order_relaxed);
    for (uint32_t i = 0; is_wanted && i < job->private_count; i++) {
        const mtl_private_buffer *buffer = &job->private_buffers[i];
        add_all(job->launch.arguments[buffer->word], self->launch.arguments[buffer->word],
                buffer->bytes / sizeof(float));
    }
    mtl_free(self->memory, self->bytes);
}
