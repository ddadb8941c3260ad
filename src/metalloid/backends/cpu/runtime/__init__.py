"""Load and launch kernels on this machine's CPU.

`device` opens the CPU and queues launches. `program` is a loaded kernel: it chooses a variant for
each launch and fuses threadgroups (`threadgroup_fusion`). `native_library` wraps the C runtime,
`faults` turns its outcomes into exceptions, and `fast_launch` binds usual launches in C. `offline`
holds CPUs that kernels are only compiled for.
"""
