"""Sets of LLVM's opcodes and flags."""

from __future__ import annotations

INTEGER_BINARY = frozenset(
    ("add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor")
)
FLOAT_BINARY = frozenset(("fadd", "fsub", "fmul", "fdiv", "frem"))
CASTS = frozenset(
    (
        "zext", "sext", "trunc", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp",
        "ptrtoint", "inttoptr", "bitcast", "addrspacecast",
    )
)  # fmt: skip
#: Flags that permit inexact arithmetic; they hold lane by lane.
FAST_MATH = frozenset(("fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"))
#: Scope of an atomic operation on what no other thread can see.
ONE_THREAD = 'syncscope("singlethread")'
