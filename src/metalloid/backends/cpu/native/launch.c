/* The exported launches: run now, or queue and fetch the outcome by ticket. */
#include "fibre.h"

#include <stdlib.h>
#include <string.h>

MTL_EXPORT uint32_t mtl_abi_version(void) { return MTL_ABI_VERSION; }

/* ---- run and wait ---- */

/* Below this a launch is over before another thread would have woken up. */
static const uint64_t alone_ns = 30000;
/* In a row of launches the other threads are awake; each takes part from this duration on. */
static const uint64_t share_in_row_ns = 3000;

/* Whether a short job is one of a row that several threads work on: it is prepared for them. Launches
 * are in a row if the time between them is less than their duration; else threads may sleep.
 * Shares are equal, so that each thread finds in its cache what it worked on in the launch before. */
static bool share_in_row(mtl_job *job, double expected_ns) {
    uint32_t seats = (uint32_t)(expected_ns / (double)share_in_row_ns);
    if (seats < 2 || (double)(mtl_now() - mtl_job_last_ended()) > expected_ns) return false;
    if (seats < job->seats) job->seats = seats;
    job->even_share = (job->group_count + job->seats - 1) / job->seats;
    return true;
}

/* Whether the job is too short for the pool to be profitable. */
static bool runs_alone(mtl_job *job) {
    if (job->seats < 2) return true;
    const double expected_ns = mtl_job_cost(job) * (double)job->group_count;
    return expected_ns <= (double)alone_ns && !share_in_row(job, expected_ns);
}

/* Runs the job on the calling thread without the pool. False if it turns out to be worth more
 * threads: then some of its threadgroups may have been run already. The two clocks take as long as a
 * small launch: without a limit, jobs for one thread need them only if the time is read. */
static bool run_alone(mtl_job *job, bool is_timed) {
    if (!is_timed && job->seats < 2 && !job->limit_ns) {
        mtl_job_work(job, 0, 0);
        return mtl_job_exhausted(job);
    }
    mtl_job_start(job);
    mtl_job_work(job, job->seats > 1 ? job->started_ns + alone_ns : 0, 0);
    uint64_t ended = mtl_now();
    atomic_store_explicit(&job->busy_ns, ended - job->started_ns, memory_order_relaxed);
    if (!mtl_job_exhausted(job)) return false;
    mtl_job_finish(job, ended);
    return true;
}

/* Whether this thread is in a signal handler of Python's that interrupted a kernel. It cannot wait for
 * a launch: that would have to wait for the kernel. */
static bool is_nested(void) { return mtl_current && mtl_current->in_handler; }

/* Calls a function of a library after all queued launches have ended. */
static int call(const mtl_descriptor *descriptor, mtl_outcome *outcome, bool is_timed) {
    *outcome = (mtl_outcome){.status = MTL_OK};
    if (!mtl_pool_idle()) {
        mtl_job job; /* without threadgroups */
        mtl_job_init(&job, descriptor, NULL, 1);
        mtl_pool_run(&job);
        if (mtl_host_raised()) job.outcome.status = MTL_INTERRUPTED;
        if (job.outcome.status != MTL_OK) {
            *outcome = job.outcome;
            return outcome->status;
        }
    }
    uint64_t started = is_timed ? mtl_now() : 0;
    ((mtl_call *)(uintptr_t)descriptor->entry)(descriptor->arguments);
    if (is_timed) outcome->seconds = (double)(mtl_now() - started) * 1e-9;
    return MTL_OK;
}

static int run(const void *block, mtl_outcome *outcome, bool is_timed) {
    if (is_nested()) {
        *outcome = (mtl_outcome){.status = MTL_NESTED};
        return MTL_NESTED;
    }
    const mtl_descriptor *descriptor = block;
    if (descriptor->flags & MTL_CALL) return call(descriptor, outcome, is_timed);
    void *const *arguments = (void *const *)descriptor->arguments;
    mtl_job job;
    mtl_job_init(&job, descriptor, arguments, mtl_threads());
    bool is_alone = mtl_pool_idle() && runs_alone(&job);
    if (job.group_count > 0 && !(is_alone && run_alone(&job, is_timed))) mtl_pool_run(&job);
    *outcome = job.outcome;
    if (mtl_host_raised()) outcome->status = MTL_INTERRUPTED;
    return outcome->status;
}

/* Runs one launch and returns its status. It starts after all queued launches have ended. */
MTL_EXPORT int mtl_run(const void *block, mtl_outcome *outcome) { return run(block, outcome, true); }

static uint32_t run_row(const void *blocks, uint32_t count, mtl_outcome *outcome, bool is_timed) {
    const char *block = blocks;
    double seconds = 0;
    for (uint32_t i = 0; i < count; i++) {
        const mtl_descriptor *descriptor = (const void *)block;
        if (run(descriptor, outcome, is_timed) != MTL_OK) return i;
        outcome->seconds = seconds += outcome->seconds;
        block += sizeof *descriptor + descriptor->argument_count * sizeof *descriptor->arguments;
    }
    return count;
}

/* Runs launches with contiguous descriptors, one after another, until one fails.
 * Returns how many have succeeded; the outcome is that of the last one, with the time of all. */
MTL_EXPORT uint32_t mtl_run_row(const void *blocks, uint32_t count, mtl_outcome *outcome) {
    return run_row(blocks, count, outcome, true);
}

/* The same, where the time is not read: the outcome may be without. */
MTL_EXPORT uint32_t mtl_run_row_untimed(const void *blocks, uint32_t count, mtl_outcome *outcome) {
    return run_row(blocks, count, outcome, false);
}

/* Whether no launch runs or is queued. */
MTL_EXPORT int mtl_is_idle(void) { return mtl_pool_idle(); }

/* ---- tickets ---- */

enum { BUCKETS = 1024 };

static struct {
    pthread_mutex_t lock;
    uint64_t last;
    mtl_job *buckets[BUCKETS]; /* jobs whose outcome has not been fetched */
} tickets = {.lock = PTHREAD_MUTEX_INITIALIZER};

static mtl_job **find(uint64_t ticket) {
    mtl_job **link = &tickets.buckets[ticket % BUCKETS];
    while (*link && (*link)->ticket != ticket) link = &(*link)->next_in_bucket;
    return link;
}

/* The job of a ticket, with a reference for the caller to release; NULL if unknown. */
static mtl_job *acquire_job(uint64_t ticket) {
    pthread_mutex_lock(&tickets.lock);
    mtl_job *job = *find(ticket);
    if (job) atomic_fetch_add(&job->references, 1);
    pthread_mutex_unlock(&tickets.lock);
    return job;
}

/* Queues a launch and returns its ticket; 0 if there is no memory for it. Launches run one after
 * another in the order of their tickets. The descriptor is copied. */
MTL_EXPORT uint64_t mtl_submit(const void *block) {
    const mtl_descriptor *descriptor = block;
    size_t argument_bytes = descriptor->argument_count * sizeof(uint64_t);
    void *memory;
    if (posix_memalign(&memory, _Alignof(mtl_job), sizeof(mtl_job) + argument_bytes) != 0) return 0;
    mtl_job *job = memory;
    void *arguments = job + 1;
    memcpy(arguments, descriptor->arguments, argument_bytes);
    mtl_job_init(job, descriptor, arguments, mtl_threads());
    atomic_store(&job->references, 2); /* the table's and the queue's */

    pthread_mutex_lock(&tickets.lock);
    uint64_t ticket = job->ticket = ++tickets.last;
    job->next_in_bucket = NULL;
    *find(ticket) = job;
    mtl_pool_append(job); /* under the lock: the queue has the order of the tickets */
    pthread_mutex_unlock(&tickets.lock);
    return ticket;
}

/* Drops the outcome of a launch, now or when it ends. */
MTL_EXPORT void mtl_forget(uint64_t ticket) {
    pthread_mutex_lock(&tickets.lock);
    mtl_job **link = find(ticket), *job = *link;
    if (job) *link = job->next_in_bucket;
    pthread_mutex_unlock(&tickets.lock);
    if (job) mtl_job_release(job);
}

/* What mtl_wait returns. */
enum { STILL_RUNNING = 0, ENDED = 1, INTERRUPTED = 2, NESTED = 3 };

/* Waits for a launch, helping with the work if there is no limit. When it has ended its outcome is
 * fetched, after which the ticket is unknown. Otherwise the time (negative = no limit) has run out, or
 * the caller has to raise what a Python signal handler raised, or is itself such a handler. */
MTL_EXPORT int mtl_wait(uint64_t ticket, double timeout_seconds, mtl_outcome *outcome) {
    if (is_nested()) return NESTED;
    mtl_job *job = acquire_job(ticket);
    if (!job) {
        *outcome = (mtl_outcome){.status = MTL_UNKNOWN_TICKET};
        return ENDED;
    }
    int result = mtl_pool_wait(job, timeout_seconds) ? ENDED : STILL_RUNNING;
    if (mtl_host_raised()) result = INTERRUPTED;
    if (result == ENDED) {
        *outcome = job->outcome;
        mtl_forget(ticket);
    }
    mtl_job_release(job);
    return result;
}

/* Ends a launch. Whether it had not ended by itself. */
MTL_EXPORT int mtl_cancel(uint64_t ticket) {
    mtl_job *job = acquire_job(ticket);
    if (!job) return 0;
    bool was_running = mtl_pool_cancel(job);
    mtl_job_release(job);
    return was_running;
}

/* Whether the launch has ended, well or not; true for unknown tickets. */
MTL_EXPORT int mtl_done(uint64_t ticket) {
    mtl_job *job = acquire_job(ticket);
    if (!job) return 1;
    bool complete = mtl_pool_completed(job);
    mtl_job_release(job);
    return complete;
}

void mtl_tickets_after_fork(void) {
    pthread_mutex_init(&tickets.lock, NULL);
    memset(tickets.buckets, 0, sizeof tickets.buckets);
}
