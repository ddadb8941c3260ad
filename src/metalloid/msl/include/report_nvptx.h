// What kernels say to the host on NVIDIA GPUs: report_block.h.
#pragma once

#include "report_types.h"

// Address of the block; set when the kernel is loaded (backends/cuda/compile/pipeline.py defines it).
extern "C" constant ulong mtl_report_block;

namespace metalloid {
namespace report {

METALLOID_INLINE device report_block* report_memory() {
  return (device report_block*)mtl_report_block;
}
METALLOID_INLINE void end_thread() { __nvvm_exit(); }
METALLOID_INLINE void put_position(device uint* group, device uint* position) {
  group[0] = __nvvm_read_ptx_sreg_ctaid_x();
  group[1] = __nvvm_read_ptx_sreg_ctaid_y();
  group[2] = __nvvm_read_ptx_sreg_ctaid_z();
  position[0] = __nvvm_read_ptx_sreg_tid_x();
  position[1] = __nvvm_read_ptx_sreg_tid_y();
  position[2] = __nvvm_read_ptx_sreg_tid_z();
}

}  // namespace report
}  // namespace metalloid

#define METALLOID_ASSERTION_FUNCTION extern "C" inline
#include "report_block.h"
#undef METALLOID_ASSERTION_FUNCTION
