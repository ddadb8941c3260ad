/* The worker threads and the queue they serve.
 *
 * Jobs form a queue and run one after another: only the head is worked on, by at most job->seats
 * threads, each of which takes a seat, works until no threadgroup is left, and leaves. The last to
 * leave completes the job and makes the next one the head. Threads that wait for a job help, too.
 *
 * Workers sleep on `work_epoch`, which changes when a new head appears; waiters sleep on
 * `done_epoch`, which changes when a job completes. All else is guarded by `lock`.
 */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "fibre.h"
#include "park.h"

static struct {
    pthread_mutex_t lock;
    mtl_job *head, *tail;
    uint32_t workers;
    _Atomic uint32_t threads; /* per job; 0 = not yet configured */
    _Atomic uint32_t queued;
    _Alignas(64) _Atomic uint32_t work_epoch;
    _Atomic uint32_t idle_workers; /* asleep on work_epoch, or about to be */
    _Alignas(64) _Atomic uint32_t done_epoch;
    _Atomic uint32_t idle_waiters;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const uint64_t FOREVER = UINT64_MAX; /* nanoseconds */

/* A main thread of Python's that waits lets Python look for Ctrl-C so often. */
static const uint64_t host_period_ns = 50000000;

/* ---- threads ---- */

static uint32_t usable_cores(void) {
#ifdef __linux__
    static const size_t cores = 8192;
    unsigned long mask[8192 / (8 * sizeof(unsigned long))] = {0};
    if (sched_getaffinity(0, cores / 8, (cpu_set_t *)mask) == 0) {
        uint32_t count = 0;
        for (size_t i = 0; i < sizeof mask / sizeof *mask; i++) {
            count += (uint32_t)__builtin_popcountl(mask[i]);
        }
        if (count > 0) return count;
    }
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

MTL_EXPORT int mtl_configure(uint32_t threads) {
    if (threads == 0) threads = usable_cores();
    atomic_store(&pool.threads, threads);
    return (int)threads;
}

MTL_EXPORT uint32_t mtl_threads(void) {
    uint32_t threads = atomic_load_explicit(&pool.threads, memory_order_relaxed);
    return threads ? threads : (uint32_t)mtl_configure(0);
}

/* Sleeps until the epoch is no longer `seen`. Spins for a moment first: in a row of short
 * launches the next one comes sooner than the system could wake anybody, which takes some 60 us:
 * between two evaluations of arrays that leave nothing in the caches Python works for 100 us. */
static void await_change(_Atomic uint32_t *epoch, uint32_t seen, _Atomic uint32_t *sleepers,
                         uint64_t timeout_ns) {
    enum { SPIN_NS = 200000, PAUSES_PER_LOOK = 16 };
    uint64_t until = mtl_now() + SPIN_NS;
    do {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load_explicit(epoch, memory_order_acquire) != seen) return;
            mtl_relax();
        }
    } while (mtl_now() < until);
    atomic_fetch_add(sleepers, 1);
    mtl_park(epoch, seen, timeout_ns);
    atomic_fetch_sub(sleepers, 1);
}

static void announce(_Atomic uint32_t *epoch, _Atomic uint32_t *sleepers, uint32_t count) {
    atomic_fetch_add(epoch, 1);
    if (count > 0 && atomic_load(sleepers) > 0) mtl_unpark(epoch, count);
}

/* ---- the queue; all of these need the lock ---- */

static bool take_seat(mtl_job *job) {
    if (!job || job->workers == job->seats || mtl_job_exhausted(job)) return false;
    job->workers++;
    if (job->started_ns == 0) mtl_job_start(job);
    return true;
}

static void unlink_job(mtl_job *job) {
    mtl_job *before = NULL;
    for (mtl_job *at = pool.head; at != job; at = at->next) before = at;
    if (before) {
        before->next = job->next;
    } else {
        pool.head = job->next;
    }
    if (pool.tail == job) pool.tail = before;
}

static void complete(mtl_job *job) {
    mtl_job_finish(job, mtl_now());
    unlink_job(job);
    atomic_fetch_sub(&pool.queued, 1);
    job->complete = true;
    announce(&pool.done_epoch, &pool.idle_waiters, UINT32_MAX);
    if (job->ticket) mtl_job_release(job);
}

/* The queue may have a new head, or the head a free seat. `helpers` threads come to work on it
 * without being called. */
static void serve_head(uint32_t helpers) {
    while (pool.head && pool.head->workers == 0 && mtl_job_exhausted(pool.head)) {
        complete(pool.head);
    }
    const mtl_job *head = pool.head;
    if (!head || head->workers + helpers >= head->seats) return;
    announce(&pool.work_epoch, &pool.idle_workers, head->seats - head->workers - helpers);
}

/* Works on the job, with the lock given up, until nothing is left to start or the deadline comes.
 * `awaited` is the job for which the caller waits; a worker waits for none. */
static void work_seated(mtl_job *job, uint64_t deadline_ns, uint64_t own_share,
                        const mtl_job *awaited) {
    pthread_mutex_unlock(&pool.lock);
    uint64_t started = mtl_now();
    mtl_job_work(job, deadline_ns, own_share);
    atomic_fetch_add_explicit(&job->busy_ns, mtl_now() - started, memory_order_relaxed);
    pthread_mutex_lock(&pool.lock);
    job->workers--;
    if (mtl_job_exhausted(job)) {
        if (job->workers > 0) return;
        complete(job);
    }
    bool comes_back = !deadline_ns && !(awaited && awaited->complete);
    serve_head(comes_back ? 1 : 0);
}

static void *worker(void *unused) {
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        if (take_seat(pool.head)) {
            work_seated(pool.head, 0, 0, NULL);
            continue;
        }
        uint32_t seen = atomic_load(&pool.work_epoch);
        pthread_mutex_unlock(&pool.lock);
        await_change(&pool.work_epoch, seen, &pool.idle_workers, 0);
        pthread_mutex_lock(&pool.lock);
    }
    return NULL;
}

static bool start_worker(void) {
    /* Signals to the process are the business of the host's own threads. */
    sigset_t asynchronous, host;
    sigfillset(&asynchronous);
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, MTL_VISIT};
    for (size_t i = 0; i < sizeof synchronous / sizeof *synchronous; i++) {
        sigdelset(&asynchronous, synchronous[i]);
    }
    pthread_sigmask(SIG_SETMASK, &asynchronous, &host);
    pthread_t thread;
    bool started = pthread_create(&thread, NULL, worker, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &host, NULL);
    if (started) pthread_detach(thread);
    return started;
}

static void start_workers(uint32_t count) {
    while (pool.workers < count && start_worker()) pool.workers++;
}

/* ---- what launches use ---- */

bool mtl_pool_idle(void) {
    return atomic_load_explicit(&pool.queued, memory_order_acquire) == 0;
}

/* Needs the lock. `helpers` threads come to work on the job without being called, so that many fewer
 * workers are needed. */
static void append(mtl_job *job, uint32_t helpers) {
    if (job->seats > helpers) start_workers(job->seats - helpers);
    atomic_fetch_add(&pool.queued, 1);
    job->next = NULL;
    if (pool.head) {
        pool.tail->next = job;
    } else {
        pool.head = job;
    }
    pool.tail = job;
    if (pool.head == job) serve_head(helpers);
}

/* Queues the job; its memory must last until it is complete. */
void mtl_pool_append(mtl_job *job) {
    pthread_mutex_lock(&pool.lock);
    append(job, 0);
    pthread_mutex_unlock(&pool.lock);
}

/* Queues the job and works on it until it is complete. Of equal shares this thread has the first, in
 * each launch of a row: so it takes its seat before anybody else can. */
void mtl_pool_run(mtl_job *job) {
    pthread_mutex_lock(&pool.lock);
    bool is_first = job->even_share > 0 && !pool.head;
    if (is_first) atomic_store(&job->next_group, job->even_share);
    append(job, 1);
    if (is_first && take_seat(job)) work_seated(job, 0, job->even_share, job);
    pthread_mutex_unlock(&pool.lock);
    mtl_pool_wait(job, -1);
}

/* Whether a thread with `left_ns` to wait may help with the job without being late, and until
 * when it may start threadgroups. Shares double from one threadgroup on, so the last one takes
 * no longer than all before it. */
static bool has_time_for(const mtl_job *job, uint64_t now, uint64_t left_ns,
                         uint64_t *deadline_ns) {
    *deadline_ns = left_ns == FOREVER ? 0 : now + left_ns / 2;
    if (!job || left_ns == FOREVER || pool.workers == 0) return true;
    double cost = mtl_job_cost(job);
    return cost > 0 && cost < (double)left_ns / 4;
}

/* Waits until the job is complete; false if the time (negative = no limit) ran out first. Works
 * on the head of the queue meanwhile. */
bool mtl_pool_wait(mtl_job *job, double timeout_seconds) {
    const double longest_seconds = 1e9;
    uint64_t limit = FOREVER;
    if (timeout_seconds >= 0 && timeout_seconds < longest_seconds) {
        limit = mtl_now() + (uint64_t)(timeout_seconds * 1e9);
    }
    bool is_host = mtl_host_is_here();
    uint64_t next_poll = is_host ? mtl_now() + host_period_ns : FOREVER;
    pthread_mutex_lock(&pool.lock);
    while (!job->complete) {
        uint64_t now = is_host || limit != FOREVER ? mtl_now() : 0;
        if (now >= limit) break;
        if (now >= next_poll) {
            pthread_mutex_unlock(&pool.lock);
            if (mtl_host_poll()) mtl_pool_cancel(NULL);
            next_poll = mtl_now() + host_period_ns;
            pthread_mutex_lock(&pool.lock);
            continue;
        }
        uint64_t left = limit == FOREVER ? FOREVER : limit - now, deadline;
        if (has_time_for(pool.head, now, left, &deadline) && take_seat(pool.head)) {
            work_seated(pool.head, deadline, 0, job);
            continue;
        }
        uint32_t seen = atomic_load(&pool.done_epoch);
        pthread_mutex_unlock(&pool.lock);
        uint64_t pause = is_host && next_poll - now < left ? next_poll - now : left;
        await_change(&pool.done_epoch, seen, &pool.idle_waiters, pause == FOREVER ? 0 : pause);
        pthread_mutex_lock(&pool.lock);
    }
    bool complete = job->complete;
    pthread_mutex_unlock(&pool.lock);
    return complete;
}

/* Stops one job, or all in the queue (NULL). Those without workers are complete when they come to the
 * head of the queue. Whether one of them had not ended. */
bool mtl_pool_cancel(const mtl_job *only) {
    bool is_listed = false;
    pthread_mutex_lock(&pool.lock);
    for (mtl_job *job = pool.head; job; job = job->next) {
        if (only && job != only) continue;
        mtl_job_fail(job, &(mtl_outcome){.status = MTL_CANCELLED});
        is_listed = true;
    }
    serve_head(0);
    pthread_mutex_unlock(&pool.lock);
    return is_listed;
}

bool mtl_pool_completed(mtl_job *job) {
    pthread_mutex_lock(&pool.lock);
    bool complete = job->complete;
    pthread_mutex_unlock(&pool.lock);
    return complete;
}

/* ---- fork: the child has none of the workers, and none of the jobs are its own ---- */

static void restart_in_child(void) {
    pthread_mutex_init(&pool.lock, NULL);
    pool.head = pool.tail = NULL;
    pool.workers = 0;
    atomic_store(&pool.queued, 0);
    atomic_store(&pool.idle_workers, 0);
    atomic_store(&pool.idle_waiters, 0);
    mtl_tickets_after_fork();
    mtl_watchdog_after_fork();
    mtl_report_after_fork();
    mtl_objects_after_fork();
    mtl_private_after_fork();
}

#ifdef __GLIBC__
/* What pthread_atfork calls. That one is in a static part of glibc, which we are not linked
 * with. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
#define pthread_atfork(prepare, parent, child) __register_atfork(prepare, parent, child, NULL)
#endif

__attribute__((constructor)) static void prepare_for_fork(void) {
    pthread_atfork(NULL, NULL, restart_in_child);
}
