"""The IR of one thread, read, changed and printed again: clang compiles it to the same results.

What the passes before `shapes` make of a function is still code for one thread, so the reference
engine can run it.
"""

import dataclasses
import itertools

import numpy as np
import pytest
import random_kernels
from test_engines_agree import INDEPENDENT, WAITING, results

import metalloid as mtl
from metalloid.backends.cpu.compile import engines, reference
from metalloid.compiler.analysis.simdgroup_functions import ALL_PASS, NONE_PASSES
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Value
from metalloid.compiler.ir.parser import (
    flatten_address_spaces,
    parse_function,
    replace_function,
)
from metalloid.compiler.ir.types import I1, POINTER
from metalloid.compiler.ir.verifier import verify
from metalloid.compiler.transforms.defer_atomics import defer_atomics
from metalloid.compiler.transforms.legalize_bf16 import legalize_bf16
from metalloid.compiler.transforms.loop_simplify import simplify_loops
from metalloid.compiler.transforms.lower_memcpy import lower_memcpy
from metalloid.compiler.transforms.private_atomics import demote_private_atomics
from metalloid.compiler.transforms.rematerialize import rematerialize
from metalloid.compiler.transforms.scalarize_vectors import scalarize_vectors
from metalloid.compiler.transforms.soa_private import soa_private
from metalloid.compiler.transforms.split_at_barriers import split_at_barriers
from metalloid.compiler.transforms.version_uniform_loops import version_uniform_loops


def nothing(function):
    """Only read and print."""


def collect(function):
    defer_atomics(function, Value(POINTER, "%nothing"))


def interleave_one(function):
    """For one lane all arrays are interleaved as they are."""
    soa_private(function, 1)


def versioned(function):
    """Loops are versioned whatever their branches depend on: one thread always agrees."""
    version_uniform_loops(function, {one.result for one in function.instructions() if one.result})


def recompute(function):
    rematerialize(function, Graph(function), set())


#: In the order of `vectorize.parse` and `vectorize`, but for passes whose results are no code of one
#: thread: products as matrices, threadgroup variables before a parameter, rows of threads.
IN_ORDER = (
    nothing, demote_private_atomics, lower_memcpy, scalarize_vectors, legalize_bf16, collect,
    split_at_barriers, interleave_one, versioned, simplify_loops, recompute,
)  # fmt: skip


def passes_up_to(last):
    """All passes up to one of them, each of which leaves SSA form."""

    def change(function):
        for one in IN_ORDER[: IN_ORDER.index(last) + 1]:
            one(function)
            verify(function, one.__name__)

    return change


def as_llvm(function):
    """Our own instructions as LLVM's, which do the same for one thread."""
    for block in function.blocks.values():
        for one in block.body:
            one.flags = tuple(flag for flag in one.flags if flag != "call_invariant")
            one.accumulator = None
            if one.op == "alloca":
                one.lane_step = 0  # the step from a lane's array to the next
            if one.op in ("copy", "fill"):
                source, size, target = one.operands
                name = "memset.p0" if one.op == "fill" else "memmove.p0.p0"
                one.op, one.callee = "call", f"@llvm.{name}.i64"
                one.operands = [target, source, size, Value(I1, "false")]
            elif one.callee in (ALL_PASS, NONE_PASSES):
                holds = "false" if one.callee == ALL_PASS else "true"
                one.op, one.callee, one.operands = "xor", "", [*one.operands, Value(I1, holds)]


COPIES = (
    "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
)


class Changed:
    """The reference engine, with a pass before clang's back end."""

    functions = staticmethod(reference.functions)
    _numbers = itertools.count(1)

    def __init__(self, change):
        self.change, self.texts, self.number = change, [], next(self._numbers)

    def lower(self, kernel, variant):
        lowered = reference.lower(kernel, variant)
        ir = flatten_address_spaces(lowered.ir)
        function = parse_function(ir, ENTRY_SYMBOL)
        self.change(function)
        as_llvm(function)
        for line in COPIES:
            ir = ir if line.split("(")[0].split("@")[1] in ir else f"{ir}\n{line}\n"
        self.texts.append((ir, replace_function(ir, function)))
        return dataclasses.replace(lowered, ir=self.texts[-1][1])


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache that no other test sees: what is in it was made by changed engines."""
    with mtl.config.scope(cache_dir=str(tmp_path_factory.mktemp("cache")), cpu_engine="reference"):
        yield


@pytest.fixture
def compiled(cache, monkeypatch):
    """A function: the library of a text, compiled by an engine that replaces the reference."""

    def compile(text, engine):
        monkeypatch.setitem(engines._ENGINES, "reference", engine)
        # Its name is the same, so the text has to tell the engines apart in the cache.
        lib = mtl.library(f"{text}constant int compiled_by_{getattr(engine, 'number', 0)} = 0;\n")
        for name in lib:
            lib[name]
        return lib

    return compile


@pytest.mark.parametrize(
    "waits",
    [pytest.param(False, marks=pytest.mark.slow), True],
    ids=["independent", "waiting"],
)
@pytest.mark.parametrize(
    "last",
    [*(pytest.param(each, marks=pytest.mark.slow) for each in IN_ORDER[:-1]), IN_ORDER[-1]],
    ids=lambda change: change.__name__,
)
def test_the_same_results(last, waits, compiled):
    text = random_kernels.library_text(11, 1, waits)
    before = compiled(text, reference)
    engine = Changed(passes_up_to(last))
    after = compiled(text, engine)
    assert len(engine.texts) == len(after)
    grid, group = (WAITING if waits else INDEPENDENT)[1]
    for name in before:
        expected, got = (results(lib, name, grid, group, 3) for lib in (before, after))
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_printed_is_read_as_it_was(compiled):
    engine = Changed(nothing)
    compiled(random_kernels.library_text(12, 2, waits=True), engine)
    for before, after in engine.texts:
        first, second = (parse_function(ir, ENTRY_SYMBOL) for ir in (before, after))
        assert first.parameters == second.parameters
        assert [b.name for b in first.blocks.values()] == [b.name for b in second.blocks.values()]
        for read, printed in zip(first.instructions(), second.instructions(), strict=True):
            assert dataclasses.astuple(read) == dataclasses.astuple(printed)
