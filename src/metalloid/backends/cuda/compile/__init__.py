"""From a kernel to PTX: the passes over LLVM IR and PTX text, and their pipeline.

`compile_ptx` runs clang, the pipeline and clang again; the device and the offline target call it,
and read only `PtxKernel` and a few symbol names of the other modules.

* `pipeline` lists the passes over the kernel's function, in order; `context` is what they share,
  `launch_data` tells them where parameters are, `single_passes` runs them on textual IR;
* `warp_divergence` calls `reconvergence`; `full_warp_loops` and `member_masks` use the result;
* `tensor_cores` stands alone; `coarsening` calls `vectorized_coarsening`, and
  `reduction_coarsening` is for loops that add to memory;
* `module_edits` edits the text of the module besides the kernel, `dynamic_shared_memory` and
  `cancellation_polls` edit PTX, and `target` holds clang's flags.
"""
