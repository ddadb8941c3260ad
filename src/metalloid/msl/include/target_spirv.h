// The operations of target_externals.h in SPIR-V for OpenCL, where a simdgroup is 32 adjacent threads of a
// subgroup. METALLOID_SUBGROUP says how many it has: 32, 64 or 128.
//
// The group instructions with "NonUniform" in their names work on the active invocations, as MSL's
// functions do. LLVM knows SPIR-V's instructions as functions with their names.
#pragma once

#include "lane_operations.h"
#include "report_spirv.h"

#define METALLOID_DEVICE_FUNCTION \
  extern "C" inline __attribute__((always_inline, convergent, nothrow))
#define METALLOID_SPIRV_FUNCTION [[clang::sycl_external]] __attribute__((convergent, nothrow))

METALLOID_SPIRV_FUNCTION void __spirv_ControlBarrier(int execution, int memory, int semantics);
// A word of OpGroupNonUniformBallot (module_edits.py).
extern "C" METALLOID_SPIRV_FUNCTION uint mtl_ballot(bool vote, uint word);
METALLOID_SPIRV_FUNCTION uint __spirv_GroupNonUniformShuffle(int execution, uint word, uint lane);

namespace metalloid {
namespace simt {

// SPIR-V's numbers of scopes, and of the memory semantics "acquire and release" of threadgroup and
// device memory.
constexpr int workgroup_scope = 2, subgroup_scope = 3, all_memory = 0x308;

// The simdgroup's number in its subgroup: a constant if it is the only one.
METALLOID_INLINE uint simdgroup() {
  return METALLOID_SUBGROUP == 32 ? 0 : __builtin_spirv_subgroup_local_invocation_id() / 32;
}
METALLOID_INLINE uint lane() {
  const uint id = __builtin_spirv_subgroup_local_invocation_id();
  return METALLOID_SUBGROUP == 32 ? id : id % 32;
}
METALLOID_INLINE uint lane_of(uint number) { return number; }
METALLOID_INLINE uint numbers_of(uint lanes) { return lanes; }
METALLOID_INLINE uint ballot(uint, bool vote) {
  return mtl_ballot(vote, simdgroup());
}
METALLOID_INLINE uint active_lanes() { return ballot(0, true); }
METALLOID_INLINE uint read_word(uint, uint word, uint lane) {
  return __spirv_GroupNonUniformShuffle(subgroup_scope, word, 32 * simdgroup() + lane);
}
METALLOID_INLINE ulong word_from_below(uint, uint word, uint distance) {
  const uint own = lane();
  return ulong(own >= distance) << 32 | read_word(0, word, own - distance & 31);
}

}  // namespace simt
}  // namespace metalloid

// ---- barriers and ids ---------------------------------------------------------------------------
// Both barriers order the memory accesses of their threads in every space; those without flags as far as
// execution_barriers.py says. A subgroup is adjacent threads in x (backends/opencl/include/entry.h).
METALLOID_DEVICE_FUNCTION void __msl_threadgroup_barrier(uint flags) {
  using namespace metalloid::simt;
  __spirv_ControlBarrier(workgroup_scope, workgroup_scope, flags == 0 ? 0 : all_memory);
}
METALLOID_DEVICE_FUNCTION void __msl_simdgroup_barrier(uint) {
  using namespace metalloid::simt;
  __spirv_ControlBarrier(subgroup_scope, subgroup_scope, all_memory);
}
METALLOID_DEVICE_FUNCTION uint __msl_simd_lane(void) { return metalloid::simt::lane(); }
METALLOID_DEVICE_FUNCTION uint __msl_simdgroup_index(void) {
  return METALLOID_SUBGROUP / 32 * __builtin_spirv_subgroup_id() + metalloid::simt::simdgroup();
}

// A product of matrices, whose factors come from the lanes that own them (metal_simdgroup_matrix.h). All
// lanes are active, so this needs no ballots. It is a loop, and a function that is not inlined: drivers
// unroll and inline it if they like, and some take minutes for kernels with many products otherwise.
extern "C" inline __attribute__((noinline, convergent, nothrow)) __msl_two_floats
__msl_simdgroup_matrix_multiply_f32(
    float a_first, float a_second, float b_first, float b_second, float c_first, float c_second) {
  const auto read = [](float value, uint lane) METALLOID_INLINE_LAMBDA {
    const uint word = metalloid::simt::read_word(0, __builtin_bit_cast(uint, value), lane);
    return __builtin_bit_cast(float, word);
  };
  const uint lane = __msl_simd_lane();
  const uint of_row = lane & 0x16, of_column = lane & 0x09;  // bits of the lane's row and column
  float first = c_first, second = c_second;
#pragma nounroll
  for (uint k = 0; k < 8; ++k) {
    const uint as_column = (k & 4) << 1 | (k >> 1 & 1);
    const uint as_row = (k & 4) << 2 | (k & 3) << 1;
    const float factor = read(k & 1 ? a_second : a_first, of_row | as_column);
    first = __builtin_fmaf(factor, read(b_first, as_row | of_column), first);
    second = __builtin_fmaf(factor, read(b_second, as_row | of_column), second);
  }
  return {first, second};
}
#define METALLOID_TARGET_MULTIPLIES_MATRICES

#include "lane_functions.h"

#undef METALLOID_TARGET_MULTIPLIES_MATRICES
#undef METALLOID_DEVICE_FUNCTION
#undef METALLOID_SPIRV_FUNCTION
