"""Functions of the sanitizer's runtime that instrumented kernels call (sanitizer.c)."""

from __future__ import annotations

ACCESS, FENCE, SHUFFLE, CONVERSION, VARIABLE, OPERATION, SHIFT, TEXEL = (
    f"@mtl_sanitizer_{name}"
    for name in (
        "access", "fence", "shuffle", "conversion", "variable", "operation", "shift", "texel",
    )
)  # fmt: skip
_DECLARATIONS = {
    ACCESS: "ptr, i64, i32, i32",
    FENCE: "i32, i32",
    SHUFFLE: "i32",
    CONVERSION: "double, i32, i32, i32",
    VARIABLE: "i8, i32",
    OPERATION: "double, double, double, double, i32, i32",
    SHIFT: "i64, i32, i32",
    TEXEL: "i1, i32",
    "@llvm.memset.p0.i64": "ptr, i8, i64, i1",
}


def with_declarations(ir: str) -> str:
    """A module that declares the functions which passes have added calls of."""
    missing = (
        f"\ndeclare void {name}({types})\n"
        for name, types in _DECLARATIONS.items()
        if f" {name}(" in ir and f"declare void {name}(" not in ir
    )
    return ir + "".join(missing)
