/* How a simdgroup function or barrier suspends the thread that called it; see group.c. */
#ifndef METALLOID_CPU_GROUP_H
#define METALLOID_CPU_GROUP_H

#include "fibre.h"

/* Waits until the simdgroup proceeds past the call at `site`; returns this lane's result. The
 * operands are those in context->running. */
uint64_t mtl_exchange_wait(mtl_context *context, mtl_rule *rule, uint32_t width, const void *site);

/* Waits until all threads of the threadgroup have come to the barrier at `site`. */
void mtl_barrier_wait(mtl_context *context, const void *site);

/* For schedules (sanitizer/schedule.c). */
void mtl_yield(mtl_context *context);
bool mtl_resume_lane(mtl_context *context, mtl_simdgroup *simdgroup, uint32_t lane);

#endif
