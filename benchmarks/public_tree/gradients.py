"""Derivatives of public kernels: whether there are any, and whether they agree with differences."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import metalloid as mtl
from public_tree.texts import Kernel, first_line, library

_library = functools.lru_cache(maxsize=1)(library)
_REFUSED = "is not differentiated: "
#: Elements of buffers, values of integers, and threads of launches.
_ELEMENTS, _NUMBER, _THREADS = 2**15, 128, 64
#: Elements of threadgroup memory that is a parameter.
_SHARED = 256
_STEP = 2**-8
#: Largest relative error of an adjoint; differences in single precision are not more precise.
_BOUND = 1e-2


class Gradient(NamedTuple):
    """The outcome of differentiating a kernel.

    Attributes
    ----------
    state : str
        ``"differentiated"``, ``"refused"``, ``"not smooth"`` (it has no floating-point inputs or
        outputs), ``"not compiled"`` (the host completes it) or ``"failed"``.
    reason : str
    agreement : str
        ``"agrees"``, or why its derivatives are not compared.
    error : float
        Of the adjoint, relative to central differences.
    """

    state: str
    reason: str = ""
    agreement: str = ""
    error: float = 0.0


def gradient(tree: Path, item: tuple[Kernel, bool]) -> Gradient:
    """Differentiate a kernel, and compare if wanted."""
    kernel, compares = item
    lib = _library(tree, kernel.file)
    reason = ""
    for constants in ({constant.name: True for constant in lib.constants}, {}):
        try:
            function = lib.function(kernel.name, constants)
            break
        except mtl.MetalloidError as error:
            reason = first_line(error)
    else:
        return Gradient("not compiled", reason)
    memory = [p.layout for p in function.signature.arguments if p.layout.form != "value"]
    floats = [each for each in memory if each.kind == "f" or each.members]
    if {each.read_only for each in floats} != {True, False}:
        return Gradient("not smooth")
    try:
        adjoint = function.vjp()
    except mtl.MetalloidError as error:
        text = first_line(error)
        if _REFUSED in text:
            return Gradient("refused", text.partition(_REFUSED)[2])
        return Gradient("failed", text)
    if not adjoint.wrt or not adjoint.outputs:
        return Gradient("not smooth")
    if not compares:
        return Gradient("differentiated")
    try:
        return _compared(function, adjoint)
    except mtl.MetalloidError as error:
        return Gradient("differentiated", "", first_line(error))


def _compared(function: Any, adjoint: Any) -> Gradient:
    """Compare an adjoint with central differences of the kernel, along a random direction."""
    random = np.random.default_rng(0)
    parameters = function.signature.arguments
    values = {p.name: _value(function, p, random) for p in parameters}
    launch = {"threads": _THREADS, "group_size": 32}
    memory = [
        mtl.threadgroup_memory(_SHARED * p.layout.bytes) for p in function.signature.threadgroup
    ]
    if any(v is None for v in values.values()):
        return Gradient("differentiated", "", "its arguments are not numbers")

    def outputs(step: float) -> list[np.ndarray]:
        given = {
            n: v + np.asarray(step * direction[n], v.dtype) if n in direction
            else v.copy() if isinstance(v, np.ndarray) else v
            for n, v in values.items()
        }  # fmt: skip
        function(*given.values(), *memory, **launch, check=True)
        return [np.asarray(given[n], np.float64) for n in adjoint.outputs]

    if any(values[n].dtype != np.float32 for n in (*adjoint.wrt, *adjoint.outputs)):
        return Gradient("differentiated", "", "its numbers are short")
    direction = {n: random.normal(size=values[n].shape).astype(np.float32) for n in adjoint.wrt}
    before, wide, near = outputs(0), *(
        [(a - b) / (2 * step) for a, b in zip(outputs(step), outputs(-step), strict=True)]
        for step in (_STEP, _STEP / 2)
    )  # fmt: skip
    seeds, slopes = [], []
    for name, v, first, second in zip(adjoint.outputs, before, wide, near, strict=True):
        # A jump, or a kink, gives another difference for another step.
        is_smooth = np.abs(first - second) <= 1e-2 * np.abs(second) + 1e-4
        is_stored = v != values[name]
        seed = random.normal(size=v.shape).astype(np.float32)
        seeds.append(np.where(is_smooth & is_stored, seed, np.float32(0)))
        slopes.append(np.where(seeds[-1] != 0, second * seeds[-1], 0))
    expected = sum(float(each.sum()) for each in slopes)
    scale = sum(float(np.abs(each).sum()) for each in slopes)
    shadows = [np.zeros(values[n].shape, np.float32) for n in adjoint.wrt]
    adjoint(*values.values(), *memory, *seeds, *shadows, **launch)
    computed = sum(
        float((s.astype(np.float64) * direction[n]).sum())
        for n, s in zip(adjoint.wrt, shadows, strict=True)
    )
    if not np.isfinite(expected) or scale == 0:
        return Gradient("differentiated", "", "these arguments give no smooth values")
    error = abs(computed - expected) / scale
    if error > _BOUND and abs(computed / expected / _THREADS - 1) < _BOUND:
        return Gradient("differentiated", "", "all threads store the same element")
    return Gradient("differentiated", "", "agrees" if error <= _BOUND else "DIFFERS", error)


def _value(function: Any, parameter: Any, random: np.random.Generator) -> Any:
    """An argument: small numbers, positive floats."""
    layout = parameter.layout
    if layout.form not in ("pointer", "reference") or parameter.is_threadgroup:
        return None
    dtype = function.dtype(parameter.name)
    if dtype.names is not None:
        if any(dtype[n].kind not in "iuf" for n in dtype.names):
            return None
        return np.array([tuple(_NUMBER for _ in dtype.names)], dtype)
    shape = dtype.shape
    base = dtype.base
    count = 1 if layout.form == "reference" else _ELEMENTS
    if base.kind in "iub":
        return np.full((count, *shape), 1 if count > 1 else _NUMBER, base)
    return random.uniform(0.25, 0.75, (count, *shape)).astype(base)
