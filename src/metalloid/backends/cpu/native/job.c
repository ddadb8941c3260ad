/* A job: one launch, and the counters that hand its threadgroups out. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

/* Products of three 32-bit sizes; false if one does not fit a signed 64-bit integer. */
static bool volume(const uint32_t size[3], uint64_t *product) {
    uint64_t area = (uint64_t)size[0] * size[1];
    return !__builtin_mul_overflow(area, size[2], product) && *product <= INT64_MAX;
}

static bool is_runnable(const mtl_descriptor *descriptor, uint64_t group_threads) {
    bool fibres_countable = !(descriptor->flags & MTL_FIBRE) || group_threads <= UINT16_MAX;
    return descriptor->entry && group_threads > 0 && fibres_countable;
}

static _Atomic uint64_t default_limit;

/* Nanoseconds that a launch may run, where its descriptor does not say; 0 = no limit. */
MTL_EXPORT void mtl_set_default_limit(uint64_t limit_ns) { atomic_store(&default_limit, limit_ns); }

/* `arguments` must outlive the job: the descriptor's own words, or a copy of them. `threads` may
 * work on it at a time. A bad descriptor makes a job without threadgroups whose outcome says so. */
void mtl_job_init(mtl_job *job, const mtl_descriptor *descriptor, void *const *arguments,
                  uint32_t threads) {
    memset(job, 0, sizeof *job);
    uint64_t group_threads, group_count;
    mtl_launch *launch = &job->launch;
    memcpy(launch->threads_per_grid, descriptor->grid, sizeof descriptor->grid);
    memcpy(launch->threads_per_threadgroup, descriptor->group, sizeof descriptor->group);
    bool countable = volume(descriptor->group, &group_threads);
    if (!countable || !is_runnable(descriptor, group_threads)) {
        job->outcome.status = MTL_BAD_DESCRIPTOR;
        return;
    }
    for (int axis = 0; axis < 3; axis++) {
        uint32_t grid = descriptor->grid[axis], group = descriptor->group[axis];
        launch->threadgroups_per_grid[axis] = grid / group + (grid % group != 0);
    }
    if (!volume(launch->threadgroups_per_grid, &group_count)) {
        job->outcome.status = MTL_BAD_DESCRIPTOR;
        return;
    }
    launch->arguments = arguments;
    job->entry = (mtl_entry *)(uintptr_t)descriptor->entry;
    job->uses_fibres = descriptor->flags & MTL_FIBRE;
    job->relaxed = descriptor->flags & MTL_RELAXED;
    job->checked = descriptor->flags & MTL_CHECKED;
    job->scheduled = descriptor->flags & MTL_SCHEDULED;
    if (job->checked || descriptor->flags & MTL_ALONE) threads = 1;
    launch->relaxed_barriers = job->relaxed;
    job->argument_count = descriptor->argument_count;
    job->private_count = descriptor->flags >> MTL_PRIVATE_SHIFT;
    uint32_t words = 2 * job->private_count; /* which end the arguments */
    job->private_buffers = (const void *)(arguments + (job->argument_count - words));
    job->threadgroup_bytes = descriptor->threadgroup_bytes;
    job->variable_bytes = descriptor->variable_bytes;
    job->cost = (_Atomic(double) *)(uintptr_t)descriptor->cost_slot;
    uint64_t default_limit_ns = atomic_load_explicit(&default_limit, memory_order_relaxed);
    job->limit_ns = descriptor->limit_ns ? descriptor->limit_ns : default_limit_ns;
    job->group_count = group_count;
    job->seats = group_count < threads ? (uint32_t)group_count : threads;
}

static uint64_t remaining(const mtl_job *job) {
    uint64_t next = atomic_load_explicit(&job->next_group, memory_order_relaxed);
    return next < job->group_count ? job->group_count - next : 0;
}

/* No threadgroup is left to hand out; some may still be running. */
bool mtl_job_exhausted(const mtl_job *job) {
    return remaining(job) == 0 || atomic_load_explicit(&job->cancelled, memory_order_relaxed);
}

/* Hands out up to `count` threadgroups, [*first, *end). */
bool mtl_job_take(mtl_job *job, uint64_t count, uint64_t *first, uint64_t *end) {
    if (mtl_job_exhausted(job)) return false;
    *first = atomic_fetch_add_explicit(&job->next_group, count, memory_order_relaxed);
    if (*first >= job->group_count) return false;
    uint64_t left = job->group_count - *first;
    *end = *first + (count < left ? count : left);
    return true;
}

/* Measured nanoseconds per threadgroup in earlier launches; 0 if unknown. */
double mtl_job_cost(const mtl_job *job) {
    return job->cost ? atomic_load_explicit(job->cost, memory_order_relaxed) : 0;
}

/* How many threadgroups a thread should take at once: a fixed fraction of what is left, so that
 * shares shrink towards the end and all threads finish together, but no less than is worth the
 * atomic. */
uint64_t mtl_job_fair_share(const mtl_job *job) {
    if (job->group_count == 1) return 1;
    const double worthwhile_ns = 1000;
    uint64_t share = remaining(job) / (4 * (uint64_t)job->seats);
    double cost = mtl_job_cost(job);
    uint64_t least = cost > 0 && cost < worthwhile_ns ? (uint64_t)(worthwhile_ns / cost) : 1;
    if (least < job->even_share) least = job->even_share;
    return share > least ? share : least;
}

/* The first threadgroup is about to run: the clock starts. */
void mtl_job_start(mtl_job *job) {
    job->started_ns = mtl_now();
    uint64_t deadline = 0;
    if (job->limit_ns && !__builtin_add_overflow(job->started_ns, job->limit_ns, &deadline)) {
        atomic_store_explicit(&job->deadline_ns, deadline, memory_order_relaxed);
    }
}

/* Records the failure unless another one was first, and stops the job. A caller that does not work on
 * it holds the pool's lock. */
void mtl_job_fail(mtl_job *job, const mtl_outcome *failure) {
    if (atomic_exchange(&job->cancelled, true)) return;
    job->outcome = *failure;
    mtl_watchdog_hurry();
}

/* Stops the job if it is past its limit. Whether it goes on. */
bool mtl_job_check_deadline(mtl_job *job) {
    uint64_t deadline = atomic_load_explicit(&job->deadline_ns, memory_order_relaxed);
    if (deadline && mtl_now() >= deadline) {
        mtl_job_fail(job, &(mtl_outcome){.status = MTL_TIMED_OUT, .limit_ns = job->limit_ns});
    }
    return !atomic_load_explicit(&job->cancelled, memory_order_relaxed);
}

static _Atomic uint64_t last_ended_ns;

/* When a job ended last, of those that are timed; 0 if none has. */
uint64_t mtl_job_last_ended(void) {
    return atomic_load_explicit(&last_ended_ns, memory_order_relaxed);
}

/* All threads have left the job: complete its outcome and learn its cost. */
void mtl_job_finish(mtl_job *job, uint64_t ended_ns) {
    atomic_store_explicit(&last_ended_ns, ended_ns, memory_order_relaxed);
    if (job->group_count == 0) return;
    job->outcome.seconds = (double)(ended_ns - job->started_ns) * 1e-9;
    if (!job->cost || job->outcome.status != MTL_OK) return;
    uint64_t busy_ns = atomic_load_explicit(&job->busy_ns, memory_order_relaxed);
    double measured = (double)busy_ns / (double)job->group_count;
    double known = mtl_job_cost(job);
    double learnt = known > 0 ? (known + measured) / 2 : measured;
    atomic_store_explicit(job->cost, learnt, memory_order_relaxed);
}

void mtl_job_release(mtl_job *job) {
    if (atomic_fetch_sub(&job->references, 1) == 1) free(job);
}
