"""From a kernel to SPIR-V: clang, a few passes over LLVM IR, and clang again.

`compile_spirv` runs them; the device and the offline target call it. `pipeline` lists the passes,
`lower_bf16` and `split_integers` are two of them. `module_edits` edits the text of the module
besides the kernel, `imports` reads names from SPIR-V, and `target` holds clang's flags.
"""
