"""From MSL to LLVM IR: the translation unit, clang with the precompiled standard library, errors.

`translate` compiles a unit; `entry` wraps a kernel for a launch. `stdlib_pch` precompiles the
headers, `fixits` repairs what clang refuses and Apple's compiler accepts, `undefined_symbols` and
`portability` report what cannot run. The back ends call it; it calls `toolchain`.
"""
