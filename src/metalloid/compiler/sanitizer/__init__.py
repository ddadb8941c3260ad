"""Instrumentation for the sanitizer: kernels that tell the runtime of their accesses of memory.

`prepare` makes LLVM keep all accesses of the text, `instrument` inserts the calls.
"""
