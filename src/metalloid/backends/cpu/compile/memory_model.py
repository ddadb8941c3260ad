"""From clang's assumptions about memory to those that hold for kernels on a CPU."""

from __future__ import annotations

from dataclasses import dataclass, field

from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.function import CallAttributes, Function, Instruction
from metalloid.compiler.ir.opcodes import ONE_THREAD
from metalloid.compiler.ir.pass_manager import Pass
from metalloid.compiler.ir.types import Pointer, Type, Unsupported, Vector, bits_of
from metalloid.compiler.transforms.shift_amounts import mask_shift_amounts

#: Address spaces of `constant` memory and of threadgroup memory.
_CONSTANT, _THREADGROUP = 1, 3
_MAX_ALIGNMENT = 8  # that of the largest scalars
_BLOCK_COPIES = ("@llvm.memcpy.", "@llvm.memmove.", "@llvm.memset.")


def mark_constant_loads(function: Function) -> None:
    """Mark loads from the `constant` address space as invariant.

    clang has no attribute for that. Without it, a store through any other pointer could change the
    bound of a loop, and prevent its vectorisation.
    """
    for i in function.instructions():
        if i.op == "load" and _space(i) == _CONSTANT and "invariant" not in i.flags:
            i.flags += ("invariant",)


def assume_scalar_alignment(function: Function) -> None:
    """Reduce the alignment of vectors and structs to that of their scalars.

    A long4 is aligned to 32 bytes in MSL, but the caller's arrays need not be; and kernels that run
    well on GPUs read a float4 from any element of a row of floats. Scalar accesses are included, as
    LLVM merges contiguous ones into a wide access.
    """
    for i in function.instructions():
        if i.op in ("load", "store"):
            type_ = i.type if i.op == "load" else i.operands[0].type
            i.align = min(i.align, _MAX_ALIGNMENT if i.ordering else _scalar_alignment(type_))
        elif i.op == "call" and i.callee.startswith(_BLOCK_COPIES) and i.attributes:
            of_result, of_arguments, of_function = i.attributes
            i.attributes = CallAttributes(
                of_result, tuple(map(_with_byte_alignment, of_arguments)), of_function
            )


def _scalar_alignment(type_: Type) -> int:
    if isinstance(type_, Vector):
        type_ = type_.element
    try:
        size = bits_of(type_) // 8
    except Unsupported:  # a pointer
        return _MAX_ALIGNMENT
    return size if size in (1, 2, 4) else _MAX_ALIGNMENT


def _with_byte_alignment(words: tuple[str, ...]) -> tuple[str, ...]:
    """Attributes of an argument with ``align 1`` for another alignment."""
    after = ("", *words)
    return tuple(
        "1" if before == "align" else word for before, word in zip(after, words, strict=False)
    )


def forget_private_volatile(function: Function) -> None:
    """Drop `volatile` from accesses to private variables, which no other thread sees.

    MLX uses such accesses against code motion. They cannot be vectorised.
    """
    private = {i.result for i in function.instructions() if i.op == "alloca"}
    for i in function.instructions():
        if i.op in ("load", "store") and not i.ordering and i.operands[-1].name in private:
            i.flags = tuple(flag for flag in i.flags if flag != "volatile")


def narrow_threadgroup_atomics(function: Function) -> None:
    """Give atomics on threadgroup memory the scope of one thread.

    One thread of the operating system runs a threadgroup.
    """
    for i in function.instructions():
        if i.ordering and i.op != "fence" and _space(i) == _THREADGROUP:
            i.ordering = f"{ONE_THREAD} {i.ordering}"


def _space(i: Instruction) -> int:
    """The address space of a memory access."""
    type_ = i.operands[1 if i.op == "store" else 0].type
    return type_.space if isinstance(type_, Pointer) else 0


# ---- the passes ----------------------------------------------------------------------------------


@dataclass
class MemoryModelContext:
    """The state of these passes.

    Attributes
    ----------
    retain_alignment : bool
        Whether accesses keep the alignment of their types, which the sanitizer checks.
    """

    retain_alignment: bool = False
    valid: set[str] = field(default_factory=set)


def _mask_shift_amounts(function: Function, context: MemoryModelContext) -> None:
    mask_shift_amounts(function, FreshNames(function))


def _mark_constant_loads(function: Function, context: MemoryModelContext) -> None:
    mark_constant_loads(function)


def _assume_scalar_alignment(function: Function, context: MemoryModelContext) -> None:
    if not context.retain_alignment:
        assume_scalar_alignment(function)


def _forget_private_volatile(function: Function, context: MemoryModelContext) -> None:
    forget_private_volatile(function)


_ASSUME_SCALAR_ALIGNMENT: Pass[MemoryModelContext] = Pass(
    "assume-scalar-alignment", _assume_scalar_alignment,
    "arrays of the caller need not be aligned as vectors and structs are in MSL",
)  # fmt: skip

#: On all functions as clang leaves them.
MEMORY_MODEL: tuple[Pass[MemoryModelContext], ...] = (
    Pass(
        "mask-shift-amounts", _mask_shift_amounts,
        "shifts by more bits than a scalar has use the low bits of the amount",
    ),
    Pass(
        "mark-constant-loads", _mark_constant_loads,
        "stores do not change `constant` memory, for which clang has no attribute",
    ),
    _ASSUME_SCALAR_ALIGNMENT,
    Pass(
        "forget-private-volatile", _forget_private_volatile,
        "`volatile` accesses of private variables can be vectorised",
    ),
)  # fmt: skip

#: On what the sanitizer's passes leave, which need the alignment of types.
ALIGNMENT: tuple[Pass[MemoryModelContext], ...] = (_ASSUME_SCALAR_ALIGNMENT,)
