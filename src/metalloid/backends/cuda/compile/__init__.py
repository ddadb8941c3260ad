"""From a kernel to PTX: the passes over LLVM IR and PTX text, and their pipeline.

`pipeline.compile_ptx` runs clang and the passes in order; the device and the offline target call
it, and read only `PtxKernel` and a few symbol names of the other modules.

* `member_masks` calls `warp_divergence` (which calls `reconvergence`) and `full_warp_loops`;
* `coarsening` calls `acyclic_blocks`, `vectorized_coarsening` and `coarsened_kernel`;
* `invariant_loads`, `tensor_cores`, `dynamic_shared_memory` and `cancellation_polls` stand alone;
* `kernel_text` finds the kernel's function in a module, `target` holds clang's flags.
"""
