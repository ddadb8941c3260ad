/* The watchdog: a thread that visits threads which have been running kernels for long.
 *
 * A kernel is plain machine code without a check at its loops. To end one, or to ask its launch
 * something, the watchdog sends MTL_VISIT to the thread that runs it. The handler (fault.c) looks
 * whether the launch was cancelled or is past its limit, and lets Python handle Ctrl-C; then the kernel
 * goes on, or is abandoned as after a fault. Short launches are never visited and pay one atomic
 * exchange each. While nothing runs, the watchdog sleeps.
 */
#include <pthread.h>
#include <signal.h>

#include "fibre.h"
#include "park.h"

static const uint64_t period_ns = 50000000;
/* For launches with a short limit. */
static const uint64_t short_period_ns = 4000000;
/* The watchdog goes to sleep when nothing has run for so many periods. */
enum { IDLE_PERIODS = 40 };

static struct {
    pthread_mutex_t lock;
    mtl_context *contexts; /* of all threads that have run kernels */
    _Atomic bool has_thread;
    _Atomic bool asleep;
    _Atomic bool hurry;       /* a launch was cancelled: visit all that run kernels */
    _Atomic bool short_limit; /* a launch with a short limit runs, or did a moment ago */
    _Atomic uint32_t calls;   /* changes to wake the watchdog */
} watchdog = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void wake(void) {
    atomic_fetch_add(&watchdog.calls, 1);
    mtl_unpark(&watchdog.calls, 1);
}

/* Visits the threads that have not come back to the pool since the last time. Whether any thread runs
 * a kernel. */
static bool visit_all(bool everyone) {
    bool has_work = false;
    pthread_mutex_lock(&watchdog.lock);
    for (mtl_context *context = watchdog.contexts; context; context = context->next) {
        uint32_t shifts = atomic_load(&context->shifts);
        bool is_working = atomic_load(&context->working);
        if (is_working && (everyone || (context->was_working && shifts == context->seen_shifts))) {
            pthread_kill(context->thread, MTL_VISIT);
        }
        context->was_working = is_working;
        context->seen_shifts = shifts;
        has_work |= is_working;
    }
    pthread_mutex_unlock(&watchdog.lock);
    return has_work;
}

static bool has_work(void) {
    bool is_listed = false;
    pthread_mutex_lock(&watchdog.lock);
    for (mtl_context *context = watchdog.contexts; context; context = context->next) {
        is_listed |= atomic_load(&context->working);
    }
    pthread_mutex_unlock(&watchdog.lock);
    return is_listed;
}

static void *watch(void *unused) {
    (void)unused;
    for (uint32_t idle = 0;;) {
        uint32_t calls = atomic_load(&watchdog.calls);
        bool everyone = atomic_exchange(&watchdog.hurry, false) || watchdog.short_limit;
        idle = visit_all(everyone) ? 0 : idle + 1;
        if (idle) atomic_store(&watchdog.short_limit, false);
        uint64_t pause = watchdog.short_limit ? short_period_ns : period_ns;
        if (idle >= IDLE_PERIODS) {
            atomic_store(&watchdog.asleep, true);
            if (!has_work()) pause = 0; /* one may have begun before it saw us asleep */
            idle = 0;
        }
        mtl_park(&watchdog.calls, calls, pause);
        atomic_store(&watchdog.asleep, false);
    }
    return NULL;
}

/* If there is no memory for a thread, kernels run but cannot be ended. */
static void start(void) {
    sigset_t all, before;
    pthread_mutex_lock(&watchdog.lock);
    if (!watchdog.has_thread) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pthread_t thread;
        watchdog.has_thread = pthread_create(&thread, NULL, watch, NULL) == 0;
        if (watchdog.has_thread) pthread_detach(thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_mutex_unlock(&watchdog.lock);
}

/* ---- what threads that run kernels say ---- */

void mtl_watchdog_add(mtl_context *context) {
    context->thread = pthread_self();
    pthread_mutex_lock(&watchdog.lock);
    context->next = watchdog.contexts;
    watchdog.contexts = context;
    pthread_mutex_unlock(&watchdog.lock);
}

void mtl_watchdog_remove(mtl_context *context) {
    pthread_mutex_lock(&watchdog.lock);
    mtl_context **link = &watchdog.contexts;
    while (*link && *link != context) link = &(*link)->next;
    if (*link) *link = context->next;
    pthread_mutex_unlock(&watchdog.lock);
}

/* This thread begins to run kernels of a launch. */
void mtl_watchdog_enter(mtl_context *context, uint64_t limit_ns) {
    uint32_t shifts = atomic_load_explicit(&context->shifts, memory_order_relaxed);
    atomic_store_explicit(&context->shifts, shifts + 1, memory_order_relaxed); /* only this thread does */
    atomic_exchange(&context->working, true); /* before the look at `asleep` */
    if (!atomic_load_explicit(&watchdog.has_thread, memory_order_relaxed)) start();
    bool is_short = limit_ns && limit_ns < 4 * period_ns;
    if (is_short && !atomic_exchange(&watchdog.short_limit, true)) wake();
    if (atomic_load_explicit(&watchdog.asleep, memory_order_relaxed)) wake();
}

void mtl_watchdog_leave(mtl_context *context) {
    atomic_store_explicit(&context->working, false, memory_order_release);
}

/* A launch was cancelled: its threads shall leave it now. */
void mtl_watchdog_hurry(void) {
    atomic_store(&watchdog.hurry, true);
    wake();
}

void mtl_watchdog_after_fork(void) {
    pthread_mutex_init(&watchdog.lock, NULL);
    watchdog.has_thread = false;
    atomic_store(&watchdog.asleep, false);
    watchdog.contexts = NULL;
    if (mtl_current) mtl_watchdog_add(mtl_current);
}
