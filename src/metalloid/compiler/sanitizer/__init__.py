"""Instrumentation for the sanitizer: kernels that tell the runtime of their accesses of memory.

The CPU back end calls `prepare` before LLVM optimises, so that it keeps all accesses of the text,
and runs `pipeline` afterwards, whose pass `instrument` inserts the calls.
"""
