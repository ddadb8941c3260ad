// The operations that a device supplies: barriers and communication between the threads of a
// simdgroup and of a quad. On the CPU they are external functions of the C runtime; target_nvptx.h
// and target_spirv.h define them elsewhere.
//
// Numbers travel as 32-bit and 64-bit integers and as float, mere bits as 32-bit and 64-bit words.
#pragma once

#include "metal_types.h"

// All threads have to take part: convergent keeps the optimiser from moving a call into a branch.
#define METALLOID_EXTERNAL extern "C" __attribute__((convergent, nomerge, nothrow))

#define METALLOID_FOR_EACH_LANE_NUMBER(X, name) \
  X(name, i32, int) X(name, u32, uint) X(name, i64, long) X(name, u64, ulong) X(name, f32, float)
#define METALLOID_FOR_EACH_LANE_WORD(X, name) X(name, b32, uint) X(name, b64, ulong)

// X(name) for the functions of one shape. `group` is simd or quad.
#define METALLOID_FOR_EACH_LANE_REDUCTION(X, group) \
  X(group##_sum) X(group##_product) X(group##_min) X(group##_max) \
  X(group##_prefix_inclusive_sum) X(group##_prefix_exclusive_sum) \
  X(group##_prefix_inclusive_product) X(group##_prefix_exclusive_product)
#define METALLOID_FOR_EACH_LANE_BITWISE_REDUCTION(X, group) \
  X(group##_and) X(group##_or) X(group##_xor)
#define METALLOID_FOR_EACH_LANE_MOVE(X, group) \
  X(group##_broadcast) X(group##_shuffle) X(group##_shuffle_xor) \
  X(group##_shuffle_up) X(group##_shuffle_down) \
  X(group##_shuffle_rotate_up) X(group##_shuffle_rotate_down)
#define METALLOID_FOR_EACH_LANE_FILL(X, group) \
  X(group##_shuffle_and_fill_up) X(group##_shuffle_and_fill_down)

// ---- declarations -------------------------------------------------------------------------------
METALLOID_EXTERNAL void __msl_threadgroup_barrier(uint flags);
METALLOID_EXTERNAL void __msl_simdgroup_barrier(uint flags);
// Where the thread is, in its simdgroup and its threadgroup: the same wherever it asks.
#define METALLOID_EXTERNAL_ID extern "C" __attribute__((const, nothrow))
METALLOID_EXTERNAL_ID uint __msl_simd_lane(void);
METALLOID_EXTERNAL_ID uint __msl_simdgroup_index(void);
// The lane's two floats of a b + c, from those of a, b and c: matrices as in
// metal_simdgroup_matrix.h.
struct __msl_two_floats {
  float first, second;
};
METALLOID_EXTERNAL __msl_two_floats __msl_simdgroup_matrix_multiply_f32(
    float a_first, float a_second, float b_first, float b_second, float c_first, float c_second);

// Messages to the host: threads do not wait for each other here.
extern "C" void __msl_log(uint type, constant char* subsystem, constant char* category,
                          constant char* format, thread const void* values, uint count);
extern "C" __attribute__((noreturn)) void __msl_assertion_failed(constant char* condition,
                                                                 constant char* file, uint line);

#define METALLOID_DECLARE1(name, suffix, T) METALLOID_EXTERNAL T __msl_##name##_##suffix(T);
#define METALLOID_DECLARE_MOVE(name, suffix, T) \
  METALLOID_EXTERNAL T __msl_##name##_##suffix(T data, ushort lane_or_delta);
#define METALLOID_DECLARE_FILL(name, suffix, T) \
  METALLOID_EXTERNAL T __msl_##name##_##suffix(T data, T filling, ushort delta, ushort modulo);

#define METALLOID_DECLARE_REDUCTION(name) METALLOID_FOR_EACH_LANE_NUMBER(METALLOID_DECLARE1, name)
#define METALLOID_DECLARE_WORDS1(name) METALLOID_FOR_EACH_LANE_WORD(METALLOID_DECLARE1, name)
#define METALLOID_DECLARE_MOVES(name) METALLOID_FOR_EACH_LANE_WORD(METALLOID_DECLARE_MOVE, name)
#define METALLOID_DECLARE_FILLS(name) METALLOID_FOR_EACH_LANE_WORD(METALLOID_DECLARE_FILL, name)

#define METALLOID_DECLARE_GROUP(group) \
  METALLOID_FOR_EACH_LANE_REDUCTION(METALLOID_DECLARE_REDUCTION, group) \
  METALLOID_FOR_EACH_LANE_BITWISE_REDUCTION(METALLOID_DECLARE_WORDS1, group) \
  METALLOID_FOR_EACH_LANE_MOVE(METALLOID_DECLARE_MOVES, group) \
  METALLOID_FOR_EACH_LANE_FILL(METALLOID_DECLARE_FILLS, group) \
  METALLOID_DECLARE_WORDS1(group##_broadcast_first) \
  METALLOID_EXTERNAL ulong __msl_##group##_ballot(bool); /* a bit for each active lane */

METALLOID_DECLARE_GROUP(simd)
METALLOID_DECLARE_GROUP(quad)

#undef METALLOID_DECLARE1
#undef METALLOID_DECLARE_MOVE
#undef METALLOID_DECLARE_FILL
#undef METALLOID_DECLARE_REDUCTION
#undef METALLOID_DECLARE_WORDS1
#undef METALLOID_DECLARE_MOVES
#undef METALLOID_DECLARE_FILLS
#undef METALLOID_DECLARE_GROUP

#if defined(__NVPTX__)
#include "target_nvptx.h"
#elif defined(__SPIRV__)
#include "target_spirv.h"
#endif
