/* Schedules: orders in which the threads of a launch may run, chosen by a seed.
 *
 * A scheduled launch runs its threadgroups in another order, and switches between the threads of a
 * threadgroup at barriers, at simdgroup functions and before accesses of memory. Each order is one that
 * a GPU may choose, too. So the result of a correct kernel does not depend on it.
 *
 * A seed also decides how often threads are switched: some defects need a simdgroup that is far ahead of
 * others, some two threads between the read and the write of an update. */
#include "sanitizer.h"

#include "../group.h"

static struct {
    uint64_t state;
    uint64_t groups, stride, first; /* threadgroup i is number (first + stride * i) % groups */
    uint32_t yield_rate, leave_rate; /* of 64 accesses; of 64 times that a simdgroup could go on */
    uint32_t simdgroup; /* that runs */
} schedule;

/* SplitMix64, from whose upper bits a number below the limit is made. */
static uint64_t random_below(uint64_t limit) {
    uint64_t bits = schedule.state += 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return ((bits ^ bits >> 31) >> 32) * limit >> 32;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Chooses the schedule of the launch that begins, of less than 2^32 threadgroups. */
MTL_EXPORT void mtl_schedule_begin(uint64_t seed, uint32_t groups) {
    static const uint32_t rates[] = {0, 2, 16};
    schedule.state = seed;
    schedule.groups = groups;
    schedule.first = random_below(groups);
    do schedule.stride = 1 + random_below(groups);
    while (common_divisor(schedule.stride, groups) != 1);
    schedule.yield_rate = rates[random_below(3)];
    schedule.leave_rate = rates[random_below(3)];
}

/* The number of the threadgroup that runs at an index of the order. */
uint64_t mtl_schedule_group(uint64_t index) {
    return (schedule.first + schedule.stride * index) % schedule.groups;
}

/* The calling thread is about to access memory: others may come before it. */
void mtl_schedule_yield(mtl_context *context) {
    if (random_below(64) < schedule.yield_rate) mtl_yield(context);
}

/* The number of one of the bits that are set. */
static uint32_t random_bit(uint32_t bits) {
    uint64_t skipped = random_below((uint64_t)__builtin_popcount(bits));
    while (skipped--) bits &= bits - 1;
    return (uint32_t)__builtin_ctz(bits);
}

/* Chooses a simdgroup that can go on. False if there is none. */
static bool choose(const mtl_simdgroup *simdgroups, uint32_t count) {
    uint32_t can_go_on = 0; /* a threadgroup has at most 32 simdgroups */
    for (uint32_t i = 0; i < count; i++) can_go_on |= (uint32_t)(simdgroups[i].ready != 0) << i;
    if (can_go_on) schedule.simdgroup = random_bit(can_go_on);
    return can_go_on != 0;
}

/* Runs all threads of the threadgroup until they have finished or wait at a barrier. */
bool mtl_schedule_run(mtl_context *context, uint32_t count) {
    while (choose(context->simdgroups, count)) {
        mtl_simdgroup *simdgroup = &context->simdgroups[schedule.simdgroup];
        do {
            if (!mtl_resume_lane(context, simdgroup, random_bit(simdgroup->ready))) return false;
        } while (simdgroup->ready && random_below(64) >= schedule.leave_rate);
    }
    return true;
}
