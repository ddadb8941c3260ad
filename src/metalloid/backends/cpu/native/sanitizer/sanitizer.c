/* Which accesses of checked launches race: happens-before within and between threadgroups. */
#include "sanitizer.h"

#include <string.h>

enum { MEM_DEVICE = 1, MEM_THREADGROUP = 2, MEM_TEXTURE = 4 }; /* metal::mem_flags */

/* The barriers that a thread of the running threadgroup has passed. */
typedef struct thread_clock {
    uint32_t epoch[MTL_SPACES], simd_epoch[MTL_SPACES]; /* those that order each memory */
    uint32_t barriers, simd_barriers;                   /* all */
    uint16_t shuffle; /* the site of its last simdgroup function */
} thread_clock;

static struct {
    uint32_t group; /* the running threadgroup, from 1 */
    uint32_t earlier; /* threadgroups of launches that are not ordered with this one */
    thread_clock threads[MTL_MAX_THREADS];
    mtl_report reports[MTL_REPORTS];
    uint32_t report_count;
    bool looks;   /* for defects; else the launch only has a schedule */
    uint32_t requested; /* of what is reported on request only: kinds of reports */
    bool is_full; /* there was no memory for more cells, or for more reports */
    /* Reports of an access that has not been done yet: what it writes is not known. The second one is
     * made only if it differs from what the memory has. */
    mtl_report *unfinished, rewrite;
    const mtl_memory *arguments, *fresh;
    uint32_t argument_count, fresh_count;
    bool are_aligned; /* all arguments */
} sanitizer;

/* The access that is being looked at. */
typedef struct visit {
    mtl_access access;
    uint32_t kind;
    enum mtl_space space;
    uint64_t address, bytes, offset;
    uint32_t reported; /* kinds of reports: there is one of each kind */
} visit;

/* ---- where an access is ---- */

static uint32_t thread_of(const mtl_context *context) {
    if (context->running) return (uint32_t)(context->running - context->fibres);
    const mtl_range *range = &context->range;
    return range->thread[0] + range->size[0] * (range->thread[1] + range->size[1] * range->thread[2]);
}

static thread_clock *enter_thread(const mtl_context *context, uint32_t *thread) {
    const uint32_t *groups = context->job->launch.threadgroups_per_grid;
    const uint32_t *group = context->range.threadgroup;
    uint32_t number = group[0] + groups[0] * (group[1] + groups[1] * group[2]) + 1;
    number += sanitizer.earlier;
    if (number != sanitizer.group) {
        sanitizer.group = number;
        memset(sanitizer.threads, 0, sizeof sanitizer.threads);
        mtl_clocks_enter();
    }
    *thread = thread_of(context) % MTL_MAX_THREADS;
    return &sanitizer.threads[*thread];
}

static bool is_inside(uint64_t address, const void *start, size_t bytes, uint64_t *offset) {
    *offset = address - (uint64_t)(uintptr_t)start;
    return *offset < bytes;
}

static bool is_private(const mtl_context *context, uint64_t address) {
    const mtl_stack *stack = context->running ? &context->running->stack : &context->kernel_stack;
    uint64_t offset;
    return is_inside(address, stack->low, stack->size, &offset);
}

static enum mtl_space space_of(mtl_context *context, uint64_t address, uint64_t *offset) {
    if (is_inside(address, context->range.threadgroup_memory, context->job->threadgroup_bytes,
                  offset) || mtl_variable_at(context, address, offset)) {
        return MTL_THREADGROUP;
    }
    *offset = 0;
    return MTL_DEVICE;
}

/* Whether an address in the memory of an argument is not aligned. Alignment counts from the beginning of
 * that memory, as the caller's array may lie anywhere. */
static bool is_misaligned(const visit *now, uint64_t alignment) {
    if (now->space == MTL_THREADGROUP) return now->offset % alignment != 0;
    if (sanitizer.are_aligned && now->address % alignment == 0) return false;
    for (uint32_t i = 0; i < sanitizer.argument_count; i++) {
        uint64_t offset = now->address - sanitizer.arguments[i].address;
        if (offset < sanitizer.arguments[i].bytes) return offset % alignment != 0;
    }
    return false; /* memory that memory points to: its beginning is unknown */
}

/* ---- order ---- */

static bool is_stale(const mtl_access *access, const visit *now) {
    if (!access->group) return true;
    return now->space == MTL_THREADGROUP && access->group != now->access.group;
}

static bool happens_before(const mtl_access *before, const mtl_access *now) {
    if (before->group != now->group) return mtl_clocks_happens_before(before);
    if (before->thread == now->thread || before->epoch < now->epoch) return true;
    bool same_simdgroup = before->thread / MTL_SIMD_WIDTH == now->thread / MTL_SIMD_WIDTH;
    return same_simdgroup && before->simd_epoch < now->simd_epoch;
}

/* Of two threads that a third may race with, keeps those with which most threads race: if any
 * of all accesses races with a later one, one of the two does. */
static void add_access(mtl_access slots[2], const visit *now) {
    const mtl_access *access = &now->access;
    for (int i = 0; i < 2; i++) {
        if (is_stale(&slots[i], now) || happens_before(&slots[i], access)) {
            slots[i] = *access;
            if (i == 0 && !is_stale(&slots[1], now) && happens_before(&slots[1], access)) {
                slots[1].group = 0;
            }
            return;
        }
    }
    if (slots[0].group != slots[1].group) return;
    uint32_t simdgroup = slots[0].thread / MTL_SIMD_WIDTH;
    bool is_of_one = simdgroup == slots[1].thread / MTL_SIMD_WIDTH;
    if (access->group != slots[0].group || (is_of_one && access->thread / MTL_SIMD_WIDTH != simdgroup)) {
        slots[1] = *access;
    }
}

/* ---- reports ---- */

static void copy_value(uint8_t value[MTL_VALUE_BYTES], uint64_t address, uint64_t bytes) {
    memcpy(value, (const void *)(uintptr_t)address, bytes);
}

static mtl_report *known_report(const mtl_report *like) {
    for (uint32_t i = 0; i < sanitizer.report_count; i++) {
        mtl_report *report = &sanitizer.reports[i];
        if (report->kind == like->kind && report->accesses[0].site == like->accesses[0].site &&
            report->accesses[1].site == like->accesses[1].site) {
            return report;
        }
    }
    return NULL;
}

/* Returns a new report like this one; NULL if there is one of these accesses already. */
static mtl_report *add_report(const mtl_report *like) {
    mtl_report *known = known_report(like);
    if (known) {
        known->count++;
        return NULL;
    }
    if (sanitizer.report_count == MTL_REPORTS) {
        sanitizer.is_full = true;
        return NULL;
    }
    mtl_report *new = &sanitizer.reports[sanitizer.report_count++];
    *new = *like;
    return new;
}

static void finish_reports(void) {
    mtl_report *report = sanitizer.unfinished, *rewrite = &sanitizer.rewrite;
    sanitizer.unfinished = NULL;
    if (report) copy_value(report->values[1], report->address, report->bytes);
    if (!rewrite->kind) return;
    copy_value(rewrite->values[1], rewrite->address, rewrite->bytes);
    if (memcmp(rewrite->values[0], rewrite->values[1], rewrite->bytes) != 0) add_report(rewrite);
    rewrite->kind = 0;
}

/* Two threads that write the same value are no defect: the result is the same in either order. */
static bool is_rewrite(const visit *now, uint32_t kind, uint32_t first_kind) {
    return kind == MTL_RACE && first_kind == MTL_WRITE && now->kind == MTL_WRITE &&
           now->bytes <= MTL_VALUE_BYTES;
}

static void report(visit *now, uint32_t kind, const mtl_access *first, uint32_t first_kind) {
    uint64_t bytes = now->bytes < MTL_VALUE_BYTES ? now->bytes : MTL_VALUE_BYTES;
    mtl_report new = {
        .kind = kind, .count = 1, .space = now->space, .bytes = (uint32_t)bytes,
        .address = now->address, .offset = now->offset,
        .accesses = {*first, now->access}, .kinds = {first_kind, now->kind},
    };
    copy_value(new.values[0], now->address, bytes);
    copy_value(new.values[1], now->address, bytes);
    if (is_rewrite(now, kind, first_kind)) {
        sanitizer.rewrite = new;
        return;
    }
    if (now->reported & kind) return; /* for another unit of the same access */
    now->reported |= kind;
    mtl_report *added = add_report(&new);
    if (now->kind & MTL_WRITE) sanitizer.unfinished = added;
}

static void check_against(visit *now, const mtl_access *before, uint32_t kind) {
    if (!is_stale(before, now) && !happens_before(before, &now->access)) {
        report(now, MTL_RACE, before, kind);
    }
}

static void check_both(visit *now, const mtl_access slots[2], uint32_t kind) {
    check_against(now, &slots[0], kind);
    check_against(now, &slots[1], kind);
}

/* ---- the accesses of a cell ---- */

/* Whether an access is in a buffer that nothing has written to before the launch. Atomic updates count from
 * the zeros that it may have. */
static bool is_fresh(const visit *now) {
    for (uint32_t i = 0; i < sanitizer.fresh_count; i++) {
        const mtl_memory *memory = &sanitizer.fresh[i];
        if (now->address - memory->address >= memory->bytes) continue;
        return memory->contents == MTL_NO_CONTENTS || !(now->kind & MTL_ATOMIC);
    }
    return false;
}

static bool is_initialised(mtl_cell *cell, const visit *now) {
    if (now->space == MTL_DEVICE && !is_fresh(now)) return true;
    if (!is_stale(&cell->write, now)) return true;
    return cell->atomics && !is_stale(&mtl_shadow_atomics(cell)->writes[0], now);
}

static void visit_atomic(mtl_cell *cell, visit *now) {
    mtl_atomics *atomics = mtl_shadow_atomics(cell);
    if (!atomics) {
        sanitizer.is_full = true;
        return;
    }
    check_against(now, &cell->write, MTL_WRITE);
    if (now->kind & MTL_WRITE) {
        check_both(now, cell->reads, MTL_READ);
        add_access(atomics->writes, now);
    } else {
        add_access(atomics->reads, now);
    }
}

static void visit_cell(mtl_cell *cell, void *state) {
    visit *now = state;
    if (now->kind & MTL_READ && !(now->kind & MTL_COPY) && !is_initialised(cell, now)) {
        report(now, MTL_UNINITIALISED, &(mtl_access){0}, 0);
    }
    if (now->kind & MTL_ATOMIC) {
        visit_atomic(cell, now);
        return;
    }
    mtl_atomics *atomics = cell->atomics ? mtl_shadow_atomics(cell) : NULL;
    check_against(now, &cell->write, MTL_WRITE);
    if (atomics) check_both(now, atomics->writes, MTL_WRITE | MTL_ATOMIC);
    if (!(now->kind & MTL_WRITE)) {
        add_access(cell->reads, now);
        return;
    }
    check_both(now, cell->reads, MTL_READ);
    if (atomics) {
        check_both(now, atomics->reads, MTL_READ | MTL_ATOMIC);
        *atomics = (mtl_atomics){0};
    }
    cell->write = now->access;
    memset(cell->reads, 0, sizeof cell->reads);
}

/* ---- what kernels and the runtime call ---- */

static void look_at(mtl_context *context, uint64_t address, uint64_t bytes, uint32_t site,
                    uint32_t kind) {
    finish_reports();
    if (!bytes || is_private(context, address)) return;
    uint32_t thread;
    const thread_clock *clock = enter_thread(context, &thread);
    uint64_t alignment = UINT64_C(1) << (kind >> MTL_ALIGNMENT_SHIFT);
    kind &= (1u << MTL_ALIGNMENT_SHIFT) - 1;
    visit now = {.kind = kind, .address = address, .bytes = bytes};
    now.space = space_of(context, address, &now.offset);
    now.access = (mtl_access){
        sanitizer.group, (uint16_t)thread, (uint16_t)site, clock->epoch[now.space],
        clock->simd_epoch[now.space], clock->barriers, clock->simd_barriers,
    };
    if (alignment > 1 && is_misaligned(&now, alignment)) report(&now, MTL_MISALIGNED, &(mtl_access){0}, 0);
    if (kind & MTL_ATOMIC && now.space == MTL_DEVICE) {
        mtl_clocks_atomic(address, kind & MTL_READ, kind & MTL_WRITE);
    }
    if (!mtl_shadow_visit(address, bytes, visit_cell, &now)) sanitizer.is_full = true;
}

/* An access that the calling thread is about to do. */
MTL_EXPORT void mtl_sanitizer_access(const void *address, uint64_t bytes, uint32_t site,
                                     uint32_t kind) {
    mtl_context *context = mtl_current;
    if (context->job->scheduled) mtl_schedule_yield(context);
    if (!sanitizer.looks) return;
    context->holds_lock = true; /* the C library's, for memory */
    look_at(context, (uint64_t)(uintptr_t)address, bytes, site, kind);
    mtl_release_lock(context);
}

MTL_EXPORT void mtl_sanitizer_fence(uint32_t releases, uint32_t acquires) {
    mtl_context *context = mtl_current;
    context->holds_lock = true;
    uint32_t thread;
    const thread_clock *clock = enter_thread(context, &thread);
    mtl_clocks_fence(sanitizer.group, clock->epoch[MTL_DEVICE], releases, acquires);
    mtl_release_lock(context);
}

/* Adds a report about a thread alone. */
static void report_thread(uint32_t kind, uint32_t thread, uint32_t site, mtl_report like) {
    finish_reports();
    like.kind = kind;
    like.count = 1;
    like.accesses[1] = (mtl_access){
        .group = sanitizer.group, .thread = (uint16_t)thread, .site = (uint16_t)site,
    };
    add_report(&like);
}

/* The calling thread is about to call a simdgroup function that reads other lanes. */
MTL_EXPORT void mtl_sanitizer_shuffle(uint32_t site) {
    uint32_t thread;
    enter_thread(mtl_current, &thread)->shuffle = (uint16_t)site;
}

/* In it, a thread reads from a lane that does not take part. */
void mtl_sanitizer_inactive(mtl_context *context, const mtl_fibre *reader, uint32_t lane) {
    uint32_t thread = (uint32_t)(reader - context->fibres) % MTL_MAX_THREADS;
    report_thread(MTL_INACTIVE_LANE, thread, sanitizer.threads[thread].shuffle,
                  (mtl_report){.address = lane});
}

/* The calling thread is about to convert a number to an integer of so many bits. */
MTL_EXPORT void mtl_sanitizer_conversion(double value, uint32_t bits, uint32_t is_signed,
                                         uint32_t site) {
    double limit = (double)(UINT64_C(1) << (bits - 1)); /* half of an unsigned type's */
    bool fits = is_signed ? value > -limit - 1 && value < limit : value > -1 && value < 2 * limit;
    /* From 2^53 on, -limit - 1 is -limit. */
    if (fits || (is_signed && value == -limit)) return;
    uint32_t thread;
    enter_thread(mtl_current, &thread);
    mtl_report like = {.bytes = sizeof value};
    memcpy(like.values[1], &value, sizeof value);
    report_thread(MTL_CONVERSION, thread, site, like);
}

/* The calling thread is about to read a variable of its own. */
MTL_EXPORT void mtl_sanitizer_variable(uint8_t has_value, uint32_t site) {
    if (has_value) return;
    uint32_t thread;
    enter_thread(mtl_current, &thread);
    report_thread(MTL_VARIABLE, thread, site, (mtl_report){.bytes = 0});
}

/* The calling thread has computed a result of up to three operands; the others are 0. */
MTL_EXPORT void mtl_sanitizer_operation(double result, double a, double b, double c,
                                        uint32_t operands, uint32_t site) {
    if (result == result || !(sanitizer.requested & MTL_NAN)) return;
    if (a != a || b != b || c != c) return;
    uint32_t thread;
    enter_thread(mtl_current, &thread);
    double doubles[] = {a, b};
    float floats[] = {(float)a, (float)b, (float)c};
    mtl_report like = {.bytes = operands * (operands == 3 ? sizeof(float) : sizeof(double))};
    memcpy(like.values[1], operands == 3 ? (void *)floats : (void *)doubles, like.bytes);
    report_thread(MTL_NAN, thread, site, like);
}

/* The calling thread is about to shift a number of so many bits. */
MTL_EXPORT void mtl_sanitizer_shift(int64_t amount, uint32_t bits, uint32_t site) {
    if ((uint64_t)amount < bits || !(sanitizer.requested & MTL_SHIFT)) return;
    uint32_t thread;
    enter_thread(mtl_current, &thread);
    mtl_report like = {.bytes = sizeof amount, .offset = bits};
    memcpy(like.values[1], &amount, sizeof amount);
    report_thread(MTL_SHIFT, thread, site, like);
}

/* The calling thread is about to read or write a texel, which the texture has or not. */
MTL_EXPORT void mtl_sanitizer_texel(bool is_inside, uint32_t site) {
    if (is_inside || !(sanitizer.requested & MTL_TEXEL)) return;
    uint32_t thread;
    enter_thread(mtl_current, &thread);
    report_thread(MTL_TEXEL, thread, site, (mtl_report){.bytes = 0});
}

/* The running thread has come to a barrier. All of the threadgroup or the simdgroup do. */
void mtl_sanitizer_barrier(mtl_context *context, uint32_t flags, bool of_simdgroup) {
    finish_reports();
    uint32_t thread;
    thread_clock *clock = enter_thread(context, &thread);
    uint32_t *epoch = of_simdgroup ? clock->simd_epoch : clock->epoch;
    if (flags & (MEM_DEVICE | MEM_TEXTURE)) epoch[MTL_DEVICE]++;
    if (flags & MEM_THREADGROUP) epoch[MTL_THREADGROUP]++;
    if (of_simdgroup) clock->simd_barriers++;
    else clock->barriers++;
}

/* Begins a checked launch of so many threadgroups: one at a time in the process. The arrays are the
 * caller's until it ends. Its accesses may race with those of the launches before it, which had
 * `earlier` threadgroups, if that is not 0. */
MTL_EXPORT void mtl_sanitizer_begin(uint32_t groups, bool looks, uint32_t requested,
                                    const mtl_memory *arguments, uint32_t argument_count,
                                    const mtl_memory *fresh, uint32_t fresh_count,
                                    uint32_t earlier) {
    if (!earlier) mtl_shadow_clear();
    memset(&sanitizer, 0, sizeof sanitizer);
    sanitizer.earlier = earlier;
    sanitizer.arguments = arguments;
    sanitizer.argument_count = argument_count;
    sanitizer.fresh = fresh;
    sanitizer.fresh_count = fresh_count;
    sanitizer.are_aligned = true;
    for (uint32_t i = 0; i < argument_count; i++) {
        sanitizer.are_aligned &= arguments[i].address % MTL_MAX_ALIGNMENT == 0;
    }
    sanitizer.looks = looks;
    sanitizer.requested = looks ? requested : 0;
    mtl_clocks_begin(earlier + groups);
}

/* Forgets the accesses of earlier launches. */
MTL_EXPORT void mtl_sanitizer_forget(void) { mtl_shadow_clear(); }

/* Ends it; its accesses are remembered if it `goes_on`. The reports are valid until the next one
 * begins; their number is negative, less one, if there was no memory for all. */
MTL_EXPORT int32_t mtl_sanitizer_end(bool goes_on, const mtl_report **reports) {
    finish_reports();
    if (!goes_on) mtl_shadow_clear();
    mtl_clocks_clear();
    *reports = sanitizer.reports;
    int32_t count = sanitizer.looks ? (int32_t)sanitizer.report_count : 0;
    return sanitizer.is_full ? -count - 1 : count;
}
