"""Copies, which convert between any two types."""

from __future__ import annotations

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import BFLOAT, Family, assert_same, element_strides
from mlx_tree.element_types import is_float, numbers, special_values, types_at_end
from mlx_tree.elementwise import SHAPES, Form, form_of, launch_general, run, strided


def convert(x, dtype):
    """The same numbers in another type, as C++ converts them, and complex ones by real part.

    A conversion to bool asks for the bits, so that NaN and tiny numbers are true.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return x.astype(np.complex64 if x.dtype.kind == "c" else np.float64) != 0
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = np.ascontiguousarray(x.real)
    if dtype == BFLOAT and x.dtype.kind in "iuf":
        # An integer is rounded twice: metalloid goes through float, as a conversion does in MSL.
        x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def arguments(source, target, rng):
    """Numbers that the target can represent: what lies beyond is undefined in C++."""
    x = np.append(special_values(source), numbers(source, 280, rng, -999, 999))
    if target.kind in "iu" and (is_float(source) or source.kind == "c"):
        info = np.iinfo(target)
        low, high = max(info.min, -999), min(info.max, 999)
        parts = x.real if source.kind == "c" else x.astype(np.float64)
        inside = (parts > low - 1) & (parts < high + 1)
        x = np.where(inside, x, numbers(source, x.size, rng, low, high)).astype(source)
    return x


def check_kernel(kernel: mtl.Kernel, form: Form, source, target, rng) -> None:
    """Compare a kernel that copies from one type to another."""
    x = arguments(np.dtype(source), np.dtype(target), rng)
    if form.strided_result:
        given, out = _into_strides(kernel, form, x, target)
        assert_same(out, convert(given, target))
        return
    for (given,), (out,) in run(kernel, form, [x], [target], target):
        assert_same(out, convert(np.broadcast_to(given, out.shape), target))


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    form, rest = form_of(name)
    _, (source, target) = types_at_end(rest)
    check_kernel(library.function(name), form, source, target, rng)


def _into_strides(kernel: mtl.Kernel, form: Form, pool, target):
    """Copy into a view with gaps, and assert that the gaps stay as they are."""
    shape = SHAPES[form.rank or 4]
    base, view = strided(pool, shape, 0)
    memory, out = strided(np.zeros(1, target), shape, 2)
    offsets = (3, 5) if form.dynamic else ()
    before, after = offsets or (0, 0)
    source = np.append(np.zeros(before, base.dtype), base)
    result = np.append(np.zeros(after, target), memory)
    strides = [element_strides(view), element_strides(out)]
    launch_general(kernel, [source, result], shape, strides, form.rank, form.work, offsets)
    filled = result[after:].reshape(memory.shape)
    assert not filled[..., shape[-1] :].any(), "the kernel wrote into a gap"
    assert not result[:after].any(), "the kernel wrote before its offset"
    return view, filled[..., : shape[-1]]


FAMILIES = (Family("copy", ("copy.metal",), check),)
