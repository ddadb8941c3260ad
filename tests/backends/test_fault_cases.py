"""Wild indices of one thread, by the kind of object, access and index, on both engines."""

from typing import NamedTuple

import numpy as np
import pytest
from test_bounds import ENGINES, guarded, is_intact

import metalloid as mtl

THREADS, GROUP, WILD = 64, 32, 37
FAR = 2**30


class Kind(NamedTuple):
    """A kind of object.

    Attributes
    ----------
    parameter : str
        Its declaration as a parameter; empty for other objects.
    local : str
        Statements that declare it, or give it values.
    element : str
        The element at ``j``.
    count : int
        Its elements.
    name : str
        As the message has it.
    writes : str
        A statement that changes the element; empty if it is constant.
    reads : bool
    """

    parameter: str
    local: str
    element: str
    count: int
    name: str
    writes: str = "{} = 7"
    reads: bool = True


_FILL = "for (int k = 0; k < {}; k++) t[k] = at[k];"
_SHARE = "t[l] = i; threadgroup_barrier(mem_flags::mem_threadgroup);"
KINDS = {
    "device": Kind("device int *y", "", "y[j]", 96, "y"),
    "device_const": Kind("device const int *y", "", "y[j]", 96, "y", ""),
    "constant": Kind("constant int *y", "", "y[j]", 96, "y", ""),
    "table": Kind("", "", "values[j]", 8, "values", ""),
    "threadgroup_array": Kind("", f"threadgroup int t[32]; {_SHARE}", "t[j]", 32, "t"),
    "threadgroup_parameter": Kind("threadgroup int *t", _SHARE, "t[j]", 32, "t"),
    "private_array": Kind("", "int t[8]; " + _FILL.format(8), "t[j]", 8, "t"),
    "atomic": Kind(
        "device atomic_int *y", "", "y[j]", 96, "y",
        "atomic_fetch_add_explicit(&{}, 1, memory_order_relaxed)", reads=False,
    ),
    "member": Kind("constant Pointers &s", "", "s.p[j]", 96, "s.p"),
    "tensor": Kind("tensor<device int, dextents<int, 1>> y", "", "y[j]", 96, "y"),
    "vectors": Kind("device int4 *y", "", "y[j]", 24, "y", "{} = int4(7)"),
    "structs": Kind("device Pair *y", "", "y[j].second", 48, "y"),
}  # fmt: skip


def text():
    """The kernels of all kinds; reads and writes have lines of their own."""
    lines = [
        "#include <metal_stdlib>", "#include <metal_tensor>", "using namespace metal;",
        "struct Pointers { int n; device int *p; };", "struct Pair { int first, second; };",
        "constant int values[8] = {1, 2, 3, 4, 5, 6, 7, 8};",
        "kernel void fill(device int *out, uint i [[thread_position_in_grid]]) { out[i] = i; }",
    ]  # fmt: skip
    for name, kind in KINDS.items():
        parameter = f"{kind.parameter}, " if kind.parameter else ""
        value = f"{kind.element}{'.x' if name == 'vectors' else ''}" if kind.reads else "j"
        write = kind.writes.format(kind.element) if kind.writes else "out[i] = j"
        lines += [
            f"kernel void of_{name}(device int *out, device const int *at, constant int &act,",
            f"  {parameter}uint i [[thread_position_in_grid]],",
            "  uint l [[thread_position_in_threadgroup]]) {",
            f"  {kind.local} int j = at[i];",
            "  if (act == 0)",
            f"    out[i] = {value};  // read {name}",
            "  else",
            f"    {write};  // write {name}",
            # A later read, so that clang removes no write.
            "  out[i] += t[at[l]];" if kind.local else "",
            "}",
        ]
    return "\n".join(lines)


def argument_of(name, kind):
    """An argument of that many elements, and the array around it."""
    if name == "threadgroup_parameter":
        return (mtl.threadgroup_memory(4 * kind.count),), np.full(200, 0x5CA1AB1E, np.int32)
    size = {"vectors": 4, "structs": 2}.get(name, 1) * kind.count
    memory, around = guarded(size, np.int32)
    if name == "vectors":
        memory = memory.reshape(-1, 4)
    if name == "structs":
        memory = memory.view([("first", np.int32), ("second", np.int32)])
    given = {"n": 0, "p": memory} if name == "member" else memory
    return (given,) if kind.parameter else (), around


CASES = [
    (name, act, where)
    for name, kind in KINDS.items()
    for act in ("read", "write") if (kind.reads if act == "read" else kind.writes)
    for where in ("end", "before", "far")
]  # fmt: skip


def test_number_of_cases():
    assert len(set(CASES)) >= 48


def check_cases(lib, source, name):
    """Each wild access ends its launch with the right message, and the next launch is right."""
    kind = KINDS[name]
    for _, act, where in (case for case in CASES if case[0] == name):
        index = {"end": kind.count, "before": -1, "far": FAR}[where]
        (out, around_out), at = guarded(THREADS, np.int32), np.zeros(THREADS, np.int32)
        at[WILD] = index
        given, around = argument_of(name, kind)
        with pytest.raises(mtl.KernelFault) as raised:
            lib[f"of_{name}"](
                out, at, int(act == "write"), *given, threads=THREADS, group_size=GROUP, wait=True
            )
        message = str(raised.value)
        line = next(n for n, t in enumerate(source.splitlines(), 1) if f"// {act} {name}" in t)
        assert raised.value.line == line, message
        verb = "write to" if act == "write" else "read of"
        if name == "structs":  # a member, by its bytes
            assert f"bytes {8 * index + 4} to {8 * index + 8} of 'y', which has 384" in message
        else:
            size = f"which has {kind.count} elements"
            assert f"{verb} index {index} of '{kind.name}', {size}" in message
        position = f"in thread ({WILD % GROUP}, 0, 0) of threadgroup ({WILD // GROUP}, 0, 0)"
        assert position in message
        assert is_intact(around)
        assert is_intact(around_out)
        lib["fill"](out, threads=THREADS)
        np.testing.assert_array_equal(out, np.arange(THREADS))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.sample(1)
def test_fault_cases(name, engine):
    source = text()
    with mtl.config.scope(cpu_engine=engine, device="cpu"):
        check_cases(mtl.library(source), source, name)


@pytest.mark.needs("checks on GPUs")
@pytest.mark.parametrize("name", KINDS)
def test_fault_cases_on_a_gpu(name):
    source = text()
    check_cases(mtl.library(source, bounds="checked"), source, name)
