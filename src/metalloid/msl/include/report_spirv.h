// What kernels say to the host on OpenCL devices: report_block.h.
#pragma once

#include "report_types.h"

// Ends the thread; pipeline.py makes it a return from the kernel, into which all is inlined.
extern "C" [[clang::sycl_external]] __attribute__((convergent, nothrow)) void mtl_end_thread();
// Returns its argument; the module has it if threads report (module_edits.py).
extern "C" [[clang::sycl_external]] __attribute__((const, nothrow)) ulong mtl_report(ulong block);

namespace metalloid {
namespace report {

// What a launch says about the threadgroup; each thread writes the same (entry.h).
struct launch_state {
  ulong block;
  uint group[3], size[3];
};
METALLOID_INLINE threadgroup launch_state& launch() {
  static threadgroup launch_state launch;
  return launch;
}

METALLOID_INLINE device report_block* report_memory() {
  return (device report_block*)mtl_report(launch().block);
}
METALLOID_INLINE void end_thread() { mtl_end_thread(); }
METALLOID_INLINE void put_position(device uint* group, device uint* position) {
  const uint index = __builtin_spirv_local_invocation_id(0);
  const uint row = index / launch().size[0];
  for (int k = 0; k < 3; ++k) group[k] = launch().group[k];
  position[0] = index % launch().size[0];
  position[1] = row % launch().size[1];
  position[2] = row / launch().size[1];
}

}  // namespace report
}  // namespace metalloid

#define METALLOID_ASSERTION_FUNCTION extern "C" inline __attribute__((always_inline))
#include "report_block.h"
#undef METALLOID_ASSERTION_FUNCTION
