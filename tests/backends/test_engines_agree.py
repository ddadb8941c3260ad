"""The engines are each other's oracle: random kernels give the same bits."""

import logging
from contextlib import contextmanager

import numpy as np
import pytest
import random_kernels

import metalloid as mtl
from metalloid.backends.cpu.compile import variants, vector
from metalloid.backends.cpu.compile.variants import variant_for
from metalloid.backends.cpu.host import vector_extension
from metalloid.compiler.vectorize.builder import Builder
from metalloid.errors import KernelFault
from metalloid.runtime.launch.log_messages import LOGGER

pytestmark = pytest.mark.needs("the CPU")

INDEPENDENT = [((100,), (100,)), ((70, 3), (17, 2)), ((33,), (1,)), ((5, 5), (3, 2))]
WAITING = [
    ((96,), (32,)),
    ((70,), (45,)),
    ((16, 6), (8, 2)),
    ((20, 3), (16, 3)),
    ((64, 2), (64, 1)),
    ((32, 4), (32, 4)),
]


class Log(logging.Handler):
    """The messages of each thread, in its order; `is_complete` unless some were dropped."""

    def __init__(self):
        super().__init__()
        self.of_thread, self.is_complete = {}, True

    def emit(self, record):
        if record.levelno == logging.WARNING:
            self.is_complete = False
            return
        thread = record.kernel, record.kernel_threadgroup, record.kernel_thread
        self.of_thread.setdefault(thread, []).append(record.args[1])


@contextmanager
def logged():
    logger, handler = logging.getLogger(LOGGER), Log()
    level, propagates = logger.level, logger.propagate
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates


def results(lib, name, grid, group, u):
    rng = np.random.default_rng(5)
    threads = int(np.prod(grid))
    ints = rng.integers(-50, 50, random_kernels.INPUTS, dtype=np.int32)
    floats = rng.normal(size=random_kernels.INPUTS).astype(np.float32) * 4
    out = np.zeros(threads * random_kernels.OWNED, np.int32)
    fout = np.zeros(threads * random_kernels.OWNED, np.float32)
    lib[name](out, fout, ints, floats, u, threads=grid, group_size=group)
    return out, fout


def check(seed, count, waits, refusals=0, more="", launches=None):
    """Compare the engines on random kernels, of which so many may have no vector form.

    `more` is text that distinguishes code in the cache of other settings; `launches` are grids
    and threadgroups, if not the usual ones. Returns the library of the vector engine.
    """
    text = random_kernels.library_text(seed, count, waits) + more
    libraries = {}
    for engine in ("reference", "simd"):
        with mtl.config.scope(cpu_engine=engine):
            libraries[engine] = lib = mtl.library(text)
            for name in lib:
                lib[name]  # compiled here, by the engine of the scope
    for name in libraries["simd"]:
        if not libraries["simd"][name].engine.startswith("simd"):
            refusals -= 1
            assert refusals >= 0, libraries["simd"][name].engine
            continue
        for grid, group in launches or (WAITING if waits else INDEPENDENT):
            for u in (3, 6):
                with logged() as said:
                    expected = results(libraries["reference"], name, grid, group, u)
                with logged() as says:
                    got = results(libraries["simd"], name, grid, group, u)
                if said.is_complete and says.is_complete:
                    assert said.of_thread == says.of_thread, (seed, name, grid, group, u)
                for a, b in zip(expected, got, strict=True):
                    # NaN is NaN, whatever its sign and payload.
                    same = (a == b) | ((a != a) & (b != b))
                    assert same.all(), (seed, name, grid, group, u, np.flatnonzero(~same)[:8])
    return libraries["simd"]


# Seeds and counts of kernels that are neither trivial nor long.
@pytest.mark.parametrize(
    ("seed", "count", "waits"), [(0, 2, False), (5, 1, True)], ids=["independent", "waiting"]
)
def test_random_kernels(seed, count, waits):
    check(seed, count, waits)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param((16, 1), marks=pytest.mark.skipif(
            vector_extension() != "AVX-512", reason="without AVX-512 masks of one bit do not compile"
        )),
        pytest.param((8, 32), marks=pytest.mark.slow),
    ],
    ids=str,
)  # fmt: skip
def test_random_kernels_with_masked_ends_of_rows(form, monkeypatch):
    """Ends of rows run thread by thread unless there are many of them."""
    monkeypatch.setattr(variants, "_MAX_THREADS_WITHOUT_MASKS", 0)
    monkeypatch.setattr(vector, "lanes", lambda vectors: ((form[0],), form[1]))
    check(19, 1, waits=False)


#: Lanes, and bits of the integers in masks: as other processors would have them, or none has.
FORMS = [(8, 32)]
OTHER_FORMS = [
    (16, 32),
    (1, 1),
    (32, 1),
    (4, 32),
    (1, 32),
    (2, 1),
    (4, 1),
    (8, 1),
    (16, 1),
    (32, 32),
]


@pytest.mark.parametrize("waits", [False, True], ids=["independent", "waiting"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_random_kernels_in_other_forms(form, waits, monkeypatch):
    monkeypatch.setattr(vector, "lanes", lambda vectors: ((form[0],), form[1]))
    check(7, 1, waits)


def check_with_known_size(seed, count, grid, group, monkeypatch):
    size, usual = (*group, 1, 1)[:3], vector._initial_variant

    def first(kernel, ir):
        if not kernel.synchronises:
            return usual(kernel, ir)
        widths = vector._widths_of(kernel)
        return variant_for(size, size, widths, True, True).for_group_of(size, size)

    monkeypatch.setattr(vector, "_initial_variant", first)
    more = f"constant int size_is_known = {size[0]} * {size[1]};\n"
    lib = check(seed, count, waits=True, refusals=1, more=more, launches=[(grid, group)])
    for name in lib:
        program = lib[name]._program
        assert len(program._variants) == 1 or not program.waits, program._variants


@pytest.mark.parametrize(
    ("grid", "group"),
    [((192, 2), (96, 1)), pytest.param((32, 6), (32, 3), marks=pytest.mark.slow)],
    ids=["row", "column"],
)
def test_random_kernels_for_threadgroups_of_one_size(grid, group, monkeypatch):
    check_with_known_size(14, 1, grid, group, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grid", "group"), [((256,), (128,)), ((64, 6), (32, 2))], ids=["row", "column"]
)
@pytest.mark.parametrize("seed", range(400, 406))
def test_many_random_kernels_for_threadgroups_of_one_size(seed, grid, group, monkeypatch):
    check_with_known_size(seed, 4, grid, group, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("waits", [False, True], ids=["independent", "waiting"])
@pytest.mark.parametrize("form", FORMS + OTHER_FORMS, ids=str)
@pytest.mark.parametrize("seed", range(200, 206))
def test_many_random_kernels_in_all_forms(seed, form, waits, monkeypatch):
    monkeypatch.setattr(vector, "lanes", lambda vectors: ((form[0],), form[1]))
    check(seed, 4, waits, refusals=1)


def check_with_spoilt_lanes(seed, count, waits, form, monkeypatch):
    """Compare where inactive lanes hold NaN, bad addresses and the like."""
    monkeypatch.setattr(vector, "lanes", lambda vectors: ((form[0],), form[1]))
    monkeypatch.setattr(Builder, "poisons_inactive_lanes", True)
    check(seed, count, waits, refusals=1, more="constant int lanes_are_spoilt = 0;\n")


def test_inactive_lanes_do_not_matter(monkeypatch):
    check_with_spoilt_lanes(22, 1, True, (16, 1), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("waits", [False, True], ids=["independent", "waiting"])
@pytest.mark.parametrize("form", FORMS + OTHER_FORMS, ids=str)
@pytest.mark.parametrize("seed", range(300, 306))
def test_inactive_lanes_never_matter(seed, form, waits, monkeypatch):
    check_with_spoilt_lanes(seed, 4, waits, form, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("waits", [False, True], ids=["independent", "waiting"])
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_random_kernels(seed, waits):
    check(seed, 4, waits, refusals=1)


def test_integer_division_by_zero_is_a_fault():
    lib = mtl.library(
        "kernel void f(device int* x, uint i [[thread_position_in_grid]]) { x[i] = 100 / x[i]; }"
    )
    x = np.arange(1, 65, dtype=np.int32)
    lib.f(x, threads=64)
    assert x.tolist() == [100 // n for n in range(1, 65)]
    x[40] = 0
    with pytest.raises(KernelFault, match="division by zero"):
        lib.f(x, threads=64)


STRUCTS = """
#include <metal_stdlib>
using namespace metal;
struct complex { double re, im; };
struct vectors { float2 a, b; };
struct numbers { long a, b; };

kernel void choose(device complex *to, device const complex *from, constant uint &count,
                   uint i [[thread_position_in_grid]]) {
  to[i] = i < count ? from[i] : complex{1.0, 2.0};
}
kernel void choose_vectors(device vectors *to, device const vectors *from, constant uint &count,
                           uint i [[thread_position_in_grid]]) {
  to[i] = i < count ? from[i] : vectors{float2(1, 2), float2(3, 4)};
}
numbers get(device const numbers *from, uint i, uint count) {
  return i < count ? from[i] : numbers{-1, 7};
}
kernel void largest(device numbers *to, device const numbers *from, constant uint &count,
                    uint i [[thread_position_in_grid]]) {
  numbers best = {0, 0};
  for (uint k = 0; k < 4; ++k) {
    const numbers x = get(from, i + k, count);
    best = x.a > best.a ? x : best;
  }
  to[i] = best;
}
"""


def test_structs_that_are_values_are_split(rng):
    lib = mtl.library(STRUCTS)
    x = rng.standard_normal((40, 2))
    vectors = x.view(np.float32)
    integers = (x * 100).astype(np.int64)
    candidates = [np.where(np.arange(40)[:, None] + k < 30, np.roll(integers, -k, 0), (-1, 7))
                  for k in range(4)]  # fmt: skip
    best = np.zeros((40, 2), np.int64)
    for rows in candidates:
        best = np.where(rows[:, :1] > best[:, :1], rows, best)
    is_first = np.arange(40)[:, None] < 30
    for name, given, expected in [
        ("choose", x, np.where(is_first, x, (1, 2))),
        ("choose_vectors", vectors, np.where(is_first, vectors, (1, 2, 3, 4)).astype("f4")),
        ("largest", integers, best),
    ]:
        result, dtype = np.zeros_like(given), lib[name].dtype("to")
        lib[name](result.view(dtype), given.view(dtype), 30, threads=40)
        np.testing.assert_array_equal(result, expected)
        assert lib[name].engine.startswith(mtl.config.cpu_engine)
