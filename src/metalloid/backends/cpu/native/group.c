/* Running threadgroups on the calling thread, in either mode.
 *
 * LOOP mode runs on the thread's kernel stack. FIBRE mode gives every thread of the threadgroup a
 * stack of its own and defines what barriers and simdgroup functions mean:
 *
 *   - The linear index of a thread in its threadgroup of size (sx, sy, sz), smaller at the edges of
 *     the grid, is x + sx * (y + sy * z). Simdgroup = index / 32, lane = index % 32.
 *   - A lane that calls a simdgroup function publishes its operands and waits. A simdgroup proceeds
 *     when all its unfinished lanes wait, there or at a threadgroup barrier. Of the lanes at
 *     simdgroup functions, those at the lowest call site go on, as the active lanes of that call.
 *     The lowest first keeps lanes that lag, in an earlier block or still in a loop, moving
 *     until they reconverge with the others.
 *   - Call sites are ordered by the numbers that the kernel gives them with __msl_site, else by
 *     address. Lanes reconverge for certain if the order is one in which code follows all code that
 *     leads to it and each loop is contiguous. Addresses mostly have it, but compilers move code.
 *   - In a loop whose iterations the kernel counts with __msl_iteration, an earlier iteration is before
 *     all later ones.
 *   - A threadgroup barrier opens when all threads of the threadgroup wait at the same call site.
 *     When no thread can go on and that is not so, the job fails; it never hangs.
 */
#include "group.h"

#include <string.h>

#include "sanitizer/sanitizer.h"

/* ---- common to both modes ---- */

typedef struct shift {
    mtl_context *context;
    const mtl_launch *launch;
    uint64_t deadline_ns; /* 0 = none; looked at once `started` */
    bool started;
    uint64_t share;     /* threadgroups to take next at most, if there is a deadline */
    uint64_t own_share; /* the job's first threadgroups, if they are this thread's */
    uint64_t next, end; /* threadgroups taken and not yet started */
} shift;

/* The clock is read only between takes, which grow, so it costs a short job little. */
static bool take(shift *shift) {
    mtl_job *job = shift->context->job;
    if (!mtl_job_check_deadline(job)) return false;
    if (shift->own_share > 0) {
        shift->next = 0, shift->end = shift->own_share;
        shift->own_share = 0;
        return true;
    }
    uint64_t share = mtl_job_fair_share(job);
    if (shift->deadline_ns) {
        bool late = shift->started && mtl_now() >= shift->deadline_ns;
        if (late && !mtl_job_exhausted(job)) return false;
        shift->started = true;
        if (shift->share < share) {
            share = shift->share;
            shift->share *= 2;
        }
    }
    return mtl_job_take(job, share, &shift->next, &shift->end);
}

static void set_group_axis(mtl_context *context, int axis, uint32_t position) {
    const mtl_launch *launch = &context->job->launch;
    uint32_t full = launch->threads_per_threadgroup[axis];
    uint32_t left = launch->threads_per_grid[axis] - position * full;
    context->range.threadgroup[axis] = position;
    context->range.last[axis] = context->range.size[axis] = left < full ? left : full;
}

static void set_group(mtl_context *context, uint64_t index) {
    const uint32_t *groups = context->job->launch.threadgroups_per_grid;
    uint64_t row = index / groups[0];
    set_group_axis(context, 0, (uint32_t)(index % groups[0]));
    set_group_axis(context, 1, (uint32_t)(row % groups[1]));
    set_group_axis(context, 2, (uint32_t)(row / groups[1]));
}

static void advance_group(mtl_context *context) {
    const uint32_t *groups = context->job->launch.threadgroups_per_grid;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t position = context->range.threadgroup[axis] + 1;
        if (position < groups[axis]) {
            set_group_axis(context, axis, position);
            return;
        }
        set_group_axis(context, axis, 0);
    }
}

/* Starts the next threadgroup of the shift: context->range says which. */
static bool next_group(shift *shift) {
    mtl_context *context = shift->context;
    bool is_first = shift->next == shift->end;
    if (is_first && !take(shift)) return false;
    if (atomic_load_explicit(&context->job->cancelled, memory_order_relaxed)) return false;
    uint64_t index = shift->next++;
    if (context->job->scheduled) {
        set_group(context, mtl_schedule_group(index));
    } else if (is_first) {
        set_group(context, index);
    } else {
        advance_group(context);
    }
    return true;
}

static void fail(mtl_context *context, mtl_outcome failure) {
    memcpy(failure.threadgroup, context->range.threadgroup, sizeof failure.threadgroup);
    failure.valid |= MTL_THREADGROUP_VALID;
    mtl_job_fail(context->job, &failure);
}

static void fail_at(mtl_context *context, mtl_outcome failure, const uint32_t thread[3]) {
    memcpy(failure.thread, thread, sizeof failure.thread);
    failure.valid |= MTL_THREAD_VALID;
    fail(context, failure);
}

/* What a thread does when the watchdog has visited it, outside of kernels; whether its job goes on.
 * In Python's main thread handlers of signals run. If one raises, all launches are cancelled. */
bool mtl_attend(mtl_context *context) {
    context->is_visited = false;
    mtl_job *job = context->job;
    bool goes_on = mtl_job_check_deadline(job);
    if (!goes_on || !mtl_host_is_here()) return goes_on;
    context->in_handler = true;
    bool has_raised = mtl_host_poll();
    context->in_handler = false;
    if (!has_raised) return true;
    mtl_job_fail(job, &(mtl_outcome){.status = MTL_CANCELLED});
    mtl_pool_cancel(NULL);
    return false;
}

/* Runs kernel code until it switches back to the scheduler. False if it faulted. */
static bool enter_kernel(mtl_context *context, void *stack_pointer) {
    mtl_switch(&context->scheduler, stack_pointer);
    if (context->fault.signal == 0) return true;

    const mtl_fault *fault = &context->fault;
    mtl_outcome failure = {
        .status = fault->stack_overflow ? MTL_STACK_OVERFLOW : MTL_SIGNAL,
        .signal = fault->signal,
        .address = fault->address,
        .code = fault->code,
    };
    if (fault->status) {
        failure.status = fault->status;
        failure.condition = (uintptr_t)fault->condition;
        failure.file = (uintptr_t)fault->file;
        failure.line = fault->line;
        failure.lane = fault->wrong_value;
        failure.arrived = fault->arrived;
        failure.expected = fault->expected;
        failure.limit_ns = fault->extent;
        fail_at(context, failure, fault->thread);
    } else if (context->running) {
        fail_at(context, failure, context->running->position);
    } else {
        fail(context, failure);
    }
    if (fault->stack_overflow) {
        mtl_stack_discard(context->running ? &context->running->stack : &context->kernel_stack);
    }
    context->fault = (mtl_fault){0};
    return false;
}

/* ---- LOOP mode ---- */

static void loop_body(void *argument) {
    shift *shift = argument;
    mtl_context *context = shift->context;
    const mtl_job *job = context->job;
    context->in_kernel = true;
    while (next_group(shift)) {
        uint64_t left = shift->end - shift->next;
        context->range.following = left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
        shift->next += context->range.following;
        job->entry(shift->launch, &context->range);
        shift->next -= context->range.following;
    }
    context->in_kernel = false;
    void *abandoned;
    mtl_switch(&abandoned, context->scheduler);
}

static void run_loop(shift *shift) {
    mtl_context *context = shift->context;
    context->running = NULL;
    enter_kernel(context, mtl_stack_prepare(&context->kernel_stack, 0, loop_body, shift));
}

/* ---- FIBRE mode: on a fibre's stack ---- */

/* Suspends the running fibre: on to the next lane that is ready, or back to the scheduler. */
static void suspend(mtl_context *context, mtl_fibre *self) {
    mtl_simdgroup *simdgroup = context->simdgroup;
    void *target = context->scheduler;
    if (simdgroup->ready && !context->job->scheduled) {
        context->running = &simdgroup->lanes[__builtin_ctz(simdgroup->ready)];
        simdgroup->ready &= simdgroup->ready - 1;
        target = context->running->stack_pointer;
    }
    context->in_kernel = false;
    mtl_switch(&self->stack_pointer, target);
    context->in_kernel = true;
}

static void fibre_body(void *argument) {
    mtl_context *context = argument;
    context->in_kernel = true;
    mtl_fibre *self = context->running;
    mtl_range range = context->range;
    for (int axis = 0; axis < 3; axis++) {
        range.first[axis] = self->position[axis];
        range.last[axis] = self->position[axis] + 1;
    }
    context->job->entry(&context->job->launch, &range);
    context->simdgroup->finished |= 1u << self->lane;
    suspend(context, self);
}

static void wait_at(mtl_fibre *self, const void *site) {
    self->site = site;
    self->turn = self->number ? self->number : (uintptr_t)site;
}

uint64_t mtl_exchange_wait(mtl_context *context, mtl_rule *rule, uint32_t width, const void *site) {
    mtl_fibre *self = context->running;
    self->rule = rule;
    self->width = (uint16_t)width;
    wait_at(self, site);
    context->simdgroup->at_exchange |= 1u << self->lane;
    suspend(context, self);
    return self->result;
}

void mtl_barrier_wait(mtl_context *context, const void *site) {
    mtl_fibre *self = context->running;
    wait_at(self, site);
    context->simdgroup->at_barrier |= 1u << self->lane;
    suspend(context, self);
}

/* Lets other threads of a scheduled launch run before the calling one goes on. */
void mtl_yield(mtl_context *context) {
    mtl_fibre *self = context->running;
    context->simdgroup->ready |= 1u << self->lane;
    suspend(context, self);
}

/* ---- FIBRE mode: the scheduler, on the thread's own stack ---- */

/* Compares the convergence points at which `a` and `b` wait: negative if that of `a` is first. */
static int order(const mtl_fibre *a, const mtl_fibre *b) {
    for (uint32_t depth = 0; depth < a->depth && depth < b->depth; depth++) {
        const uint32_t *in_a = a->loops[depth], *in_b = b->loops[depth];
        if (in_a[0] != in_b[0]) break; /* two loops side by side: all of one before the other */
        if (in_a[1] != in_b[1]) return in_a[1] < in_b[1] ? -1 : 1;
    }
    return (a->turn > b->turn) - (a->turn < b->turn);
}

/* The lanes to resume: those at the lowest call site of the earliest iteration. */
static uint32_t next_call(const mtl_simdgroup *simdgroup) {
    const mtl_fibre *leader = &simdgroup->lanes[__builtin_ctz(simdgroup->at_exchange)];
    uint32_t lanes = 0;
    for (uint32_t left = simdgroup->at_exchange; left; left &= left - 1) {
        const mtl_fibre *lane = &simdgroup->lanes[__builtin_ctz(left)];
        int compared = order(lane, leader);
        if (compared < 0) {
            leader = lane;
            lanes = 0;
        }
        if (compared <= 0 && lane->rule == leader->rule && lane->width == leader->width) {
            lanes |= left & -left;
        }
    }
    return lanes;
}

/* Serves one simdgroup function. False if it failed. */
static bool exchange(mtl_context *context, mtl_simdgroup *simdgroup) {
    uint32_t active = next_call(simdgroup);
    const mtl_fibre *leader = &simdgroup->lanes[__builtin_ctz(active)];
    mtl_exchange call = {.lanes = simdgroup->lanes, .active = active, .width = leader->width};
    int32_t status = leader->rule(&call);
    if (status != MTL_OK) {
        mtl_outcome failure = {
            .status = status,
            .lane = call.wrong_value,
            .code = (uintptr_t)leader->site,
        };
        fail_at(context, failure, simdgroup->lanes[call.failing_lane].position);
        return false;
    }
    simdgroup->at_exchange &= ~active;
    simdgroup->ready = active;
    return true;
}

/* Runs a lane that is ready, and the simdgroup function for which it was the last one. */
bool mtl_resume_lane(mtl_context *context, mtl_simdgroup *simdgroup, uint32_t lane) {
    context->simdgroup = simdgroup;
    context->running = &simdgroup->lanes[lane];
    simdgroup->ready &= ~(1u << lane);
    if (context->is_visited && !mtl_attend(context)) return false;
    if (!enter_kernel(context, context->running->stack_pointer)) return false;
    return simdgroup->ready || !simdgroup->at_exchange || exchange(context, simdgroup);
}

/* Lets the lanes of a simdgroup go on after a threadgroup barrier. */
static void open_barrier(mtl_simdgroup *simdgroup) {
    simdgroup->at_barrier = 0;
    simdgroup->ready = simdgroup->members & ~simdgroup->finished;
}

/* Runs all simdgroups until every lane has finished or waits at a threadgroup barrier. */
static bool run_simdgroups(mtl_context *context, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) open_barrier(&context->simdgroups[i]);
    if (context->job->scheduled) return mtl_schedule_run(context, count);
    for (uint32_t i = 0; i < count; i++) {
        mtl_simdgroup *simdgroup = &context->simdgroups[i];
        while (simdgroup->ready) {
            uint32_t lane = (uint32_t)__builtin_ctz(simdgroup->ready);
            if (!mtl_resume_lane(context, simdgroup, lane)) return false;
        }
    }
    return true;
}

typedef enum { GROUP_DONE, BARRIER_OPEN, GROUP_FAILED } wait_outcome;

/* No thread can go on: is the threadgroup done, or do all its threads wait at one barrier? */
static wait_outcome resolve_waiting(mtl_context *context, uint32_t threads) {
    bool relaxed = context->job->relaxed;
    const mtl_fibre *first = NULL, *missing = NULL, *elsewhere = NULL;
    uint32_t waiting = 0, at_first = 0, excused = 0;
    for (uint32_t i = 0; i < threads; i++) {
        const mtl_simdgroup *simdgroup = &context->simdgroups[i / MTL_SIMD_WIDTH];
        const mtl_fibre *fibre = &context->fibres[i];
        if (!(simdgroup->at_barrier & 1u << fibre->lane)) {
            if (relaxed && simdgroup->finished & 1u << fibre->lane) {
                excused++;
            } else if (!missing) {
                missing = fibre;
            }
            continue;
        }
        waiting++;
        if (!first) first = fibre;
        if (fibre->turn == first->turn) {
            at_first++;
        } else if (!elsewhere) {
            elsewhere = fibre;
        }
    }
    if (waiting == 0) return GROUP_DONE;
    if ((relaxed ? waiting + excused : at_first) == threads) return BARRIER_OPEN;
    mtl_outcome failure = {
        .status = missing ? MTL_BARRIER_MISSED : MTL_BARRIER_MISMATCH,
        .arrived = at_first,
        .expected = threads,
        .code = (uintptr_t)first->site,
    };
    fail_at(context, failure, (missing ? missing : elsewhere)->position);
    return GROUP_FAILED;
}

/* Puts every thread of the threadgroup at the start of the kernel. Returns their number. */
static uint32_t start_fibres(mtl_context *context) {
    const uint32_t *size = context->range.size;
    uint32_t threads = size[0] * size[1] * size[2];
    mtl_fibre *fibre = context->fibres;
    for (uint32_t z = 0; z < size[2]; z++) {
        for (uint32_t y = 0; y < size[1]; y++) {
            for (uint32_t x = 0; x < size[0]; x++, fibre++) {
                fibre->position[0] = x;
                fibre->position[1] = y;
                fibre->position[2] = z;
                fibre->number = fibre->depth = 0;
                size_t colour = (size_t)(fibre - context->fibres);
                fibre->stack_pointer =
                    mtl_stack_prepare(&fibre->stack, colour, fibre_body, context);
            }
        }
    }
    for (uint32_t first = 0; first < threads; first += MTL_SIMD_WIDTH) {
        mtl_simdgroup *simdgroup = &context->simdgroups[first / MTL_SIMD_WIDTH];
        uint32_t missing = first + MTL_SIMD_WIDTH > threads ? first + MTL_SIMD_WIDTH - threads : 0;
        simdgroup->lanes = &context->fibres[first];
        simdgroup->members = UINT32_MAX >> missing;
        simdgroup->finished = simdgroup->at_barrier = simdgroup->at_exchange = 0;
    }
    return threads;
}

static bool run_group(mtl_context *context) {
    uint32_t threads = start_fibres(context);
    wait_outcome result;
    do {
        if (!run_simdgroups(context, (threads + MTL_SIMD_WIDTH - 1) / MTL_SIMD_WIDTH)) return false;
        result = resolve_waiting(context, threads);
    } while (result == BARRIER_OPEN);
    return result == GROUP_DONE;
}

static void run_fibres(shift *shift) {
    while (next_group(shift) && run_group(shift->context)) {
    }
}

/* ---- entry ---- */

static bool prepare(mtl_context *context, mtl_job *job) {
    const uint32_t *group = job->launch.threads_per_threadgroup;
    const uint32_t *grid = job->launch.threads_per_grid;
    uint32_t threads = 1;
    for (int axis = 0; axis < 3; axis++) {
        threads *= group[axis] < grid[axis] ? group[axis] : grid[axis];
    }
    if (job->uses_fibres && !mtl_context_reserve_fibres(context, threads)) return false;
    size_t bytes = (size_t)job->variable_bytes + job->threadgroup_bytes;
    if (!mtl_context_reserve_memory(context, bytes)) return false;
    mtl_variables_prepare(context, job->entry);
    context->job = job;
    context->range.threadgroup_memory = context->threadgroup_memory + job->variable_bytes;
    if (job->checked) mtl_shadow_set_memory(context->threadgroup_memory);
    return true;
}

void mtl_job_work(mtl_job *job, uint64_t deadline_ns, uint64_t own_share) {
    mtl_context *context = mtl_context_get();
    mtl_private_buffers private;
    const mtl_launch *launch = NULL;
    if (context && prepare(context, job)) launch = mtl_private_begin(&private, job);
    if (!launch) {
        mtl_job_fail(job, &(mtl_outcome){.status = MTL_OUT_OF_MEMORY});
        return;
    }
    shift shift = {context, launch, deadline_ns, .share = 1, .own_share = own_share};
    mtl_watchdog_enter(context, job->limit_ns);
    mtl_float_mode host = mtl_float_mode_enter();
    (job->uses_fibres ? run_fibres : run_loop)(&shift);
    mtl_float_mode_set(host);
    mtl_watchdog_leave(context);
    mtl_private_end(&private, job);
}
