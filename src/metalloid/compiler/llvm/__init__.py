"""A small typed form of LLVM's textual IR: what clang emits for kernels, parsed and printed."""
