"""Checks of the arguments of `metal_kernel` and of its calls."""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from metalloid.compiler.toolchain.target import MATH_MODES
from metalloid.errors import ArgumentError
from metalloid.kernels.metal_kernel_memory import ATOMIC_TYPES, dtype_of, signature_type
from metalloid.kernels.metal_kernel_names import used_identifiers
from metalloid.kernels.metal_kernel_text import TemplateArgument
from metalloid.msl.signature import IDS
from metalloid.runtime.arguments.argument_binder import describe
from metalloid.runtime.launch.program import Size

#: Words of the language, which no argument can be called.
RESERVED = frozenset(
    """
    alignas alignof and and_eq asm auto bfloat bitand bitor bool break case catch char char16_t
    char32_t class compl const const_cast constant constexpr continue decltype default delete
    device do double dynamic_cast else enum explicit export extern false float for fragment
    friend goto half if inline int kernel long mutable namespace new noexcept not not_eq nullptr
    operator or or_eq private protected public register reinterpret_cast return short signed
    sizeof static static_assert static_cast struct switch template this thread thread_local
    threadgroup throw true try typedef typeid typename union unsigned using vertex virtual void
    volatile wchar_t while xor xor_eq
    """.split()  # noqa: SIM905  (a list of them takes a line for each)
)

_WORD = re.compile(r"\w+", re.ASCII)
_MAX_EXTENT = 2**32 - 1


def check_function_name(name: Any, where: str = "metal_kernel") -> None:
    """Raise ArgumentError if `name` cannot be part of a kernel's name."""
    if not isinstance(name, str) or not _WORD.fullmatch(name):
        raise ArgumentError(
            f"[{where}] name expects letters, digits and underscores, got {name!r}."
        )


def check_names(
    what: str, names: Any, where: str = "metal_kernel", taken: Sequence[str] = ()
) -> tuple[str, ...]:
    """The names, if each can be declared, and once only.

    Parameters
    ----------
    taken : sequence of str
        Names that mean something else already.
    """
    if not isinstance(names, list | tuple):
        raise ArgumentError(f"[{where}] {what} expects a list of names, got {names!r}.")
    seen = set(taken)
    for name in names:
        if not isinstance(name, str) or not _WORD.fullmatch(name) or name[0].isdigit():
            raise ArgumentError(f"[{where}] {what}: {name!r} is not a valid name in MSL.")
        if name in RESERVED or name in IDS:
            kind = "a word of MSL" if name in RESERVED else "a value that Metal gives each thread"
            raise ArgumentError(f"[{where}] {what}: {name!r} is {kind}. Choose another name.")
        if name in seen:
            raise ArgumentError(f"[{where}] {what}: {name!r} is given twice.")
        seen.add(name)
    return tuple(names)


def check_texts(source: Any, header: Any) -> None:
    """Raise ArgumentError if the texts cannot be a body and a header."""
    for what, text in (("source", source), ("header", header)):
        if not isinstance(text, str):
            raise ArgumentError(f"[metal_kernel] {what} expects MSL source, got {describe(text)}.")
    if "kernel" in used_identifiers(source):
        raise ArgumentError(
            "[metal_kernel] source must be the body of a kernel, without its signature and braces. "
            "For whole functions use metalloid.library."
        )


def check_math_mode(mode: Any, where: str = "metal_kernel") -> None:
    """Raise ArgumentError if `mode` is none of the math modes."""
    if mode not in MATH_MODES:
        raise ArgumentError(
            f"[{where}] math_mode must be one of {', '.join(map(repr, MATH_MODES))}, got {mode!r}."
        )


def listed(where: str, what: str, values: Any, names: tuple[str, ...]) -> Sequence[Any]:
    """The values, one for each name, if that is what they are."""
    if isinstance(values, list | tuple) and len(values) == len(names):
        return values
    got = len(values) if isinstance(values, list | tuple) else describe(values)
    raise ArgumentError(
        f"[{where}] {what} expects a list of {len(names)} ({', '.join(names) or 'none'}), "
        f"got {got}."
    )


def output_dtype(label: str, value: Any) -> np.dtype[Any]:
    """The dtype that `value` says."""
    dtype = dtype_of(value)
    if dtype is None:
        raise ArgumentError(f"{label} expects a dtype of MSL such as numpy.float32, got {value!r}.")
    return dtype


def check_atomic(label: str, dtype: np.dtype[Any]) -> None:
    """Raise ArgumentError if there are no atomic operations on `dtype`."""
    if signature_type(dtype) not in ATOMIC_TYPES:
        raise ArgumentError(
            f"{label} is of {dtype}, which has no atomic operations; atomic_outputs=True expects "
            f"one of {', '.join(sorted(ATOMIC_TYPES))}."
        )


def template_arguments(
    where: str, template: Any, taken: Sequence[str]
) -> tuple[TemplateArgument, ...]:
    """The template's parameters, from pairs of a name and a value."""
    try:
        pairs = [(name, value) for name, value in template]
    except (TypeError, ValueError):
        raise ArgumentError(
            f"[{where}] template expects pairs of a name and a value, "
            f'[("T", numpy.float32)], got {template!r}.'
        ) from None
    check_names("template", [name for name, _ in pairs], where, taken)
    return tuple(_template_argument(where, name, value) for name, value in pairs)


def _template_argument(where: str, name: str, value: Any) -> TemplateArgument:
    if isinstance(value, bool | np.bool_):
        return TemplateArgument("bool", name, str(int(value)))
    if isinstance(value, int | np.integer) and -(2**31) <= value < 2**31:
        return TemplateArgument("int", name, str(int(value)))
    dtype = dtype_of(value)
    if dtype is None:
        raise ArgumentError(
            f"[{where}] template parameter {name!r} expects a dtype of MSL such as numpy.float32, "
            f"an int of 32 bits or a bool, got {value!r}."
        )
    return TemplateArgument("typename", name, signature_type(dtype))


def launch_sizes(
    where: str, grid: Any, threadgroup: Any, max_group_size: int
) -> tuple[Size, Size | None]:
    """Threads of the grid and of a threadgroup; None for the device's choice."""
    threads = _extents(where, "grid", grid, 0)
    if threadgroup is None:
        return threads, None
    x, y, z = _extents(where, "threadgroup", threadgroup, 1)
    if x * y * z > max_group_size:
        raise ArgumentError(
            f"[{where}] threadgroup {(x, y, z)} has {x * y * z} threads; "
            f"a threadgroup of this kernel has at most {max_group_size}."
        )
    max_x, max_y, max_z = (max(extent, 1) for extent in threads)
    return threads, (min(x, max_x), min(y, max_y), min(z, max_z))


def _extents(where: str, what: str, value: Any, least: int) -> Size:
    if type(value) is tuple and len(value) == 3:  # the usual form, made short
        x, y, z = value
        if (
            type(x) is type(y) is type(z) is int
            and least <= min(value) <= max(value) <= _MAX_EXTENT
        ):
            return x, y, z
    extents: tuple[int, ...] = ()
    with contextlib.suppress(TypeError):
        each = value if isinstance(value, Iterable) else (value,)
        extents = tuple(operator.index(extent) for extent in each)
    if not 1 <= len(extents) <= 3 or not all(least <= n <= _MAX_EXTENT for n in extents):
        raise ArgumentError(
            f"[{where}] {what} expects 1 to 3 numbers of threads, each at least {least} "
            f"and at most {_MAX_EXTENT}, got {value!r}."
        )
    x, y, z = (*extents, 1, 1)[:3]
    return (x, y, z)
