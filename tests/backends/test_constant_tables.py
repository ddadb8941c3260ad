"""Loads from small tables of constants: permutations where the processor has them, one result."""

import re

import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile import vector
from metalloid.backends.cpu.host import vector_extension

pytestmark = pytest.mark.needs("the CPU")

KINDS = {
    "float": np.float32, "half": np.float16, "int": np.int32, "short": np.int16,
    "uchar": np.uint8, "char": np.int8,
}  # fmt: skip
PERMUTES = vector_extension() == "AVX-512"


def kernel_text(tables, body):
    """A kernel with tables named after their kinds; y has as many columns as `body` writes."""
    definitions = [
        f"constant {kind} {kind}s[{len(numbers)}] = {{{', '.join(map(str, numbers))}}};"
        for kind, numbers in tables.items()
    ]
    return "\n".join(
        [
            "#include <metal_stdlib>",
            "using namespace metal;",
            *definitions,
            "kernel void f(device int* y, device const uint* x,",
            "              uint i [[thread_position_in_grid]]) {",
            "  uint at = x[i];",
            *(f"  y[{len(body)} * i + {n}] = {value};" for n, value in enumerate(body)),
            "}",
        ]
    )


def run(text, x, columns):
    """The output of the kernel, the same by both engines; and its vector code."""
    results = []
    for engine in ("reference", "simd"):
        with mtl.config.scope(cpu_engine=engine):
            kernel = mtl.library(text).f
        y = np.zeros((x.size, columns), np.int32)
        kernel(y, x, threads=x.size)
        results.append(y)
    np.testing.assert_array_equal(*results)
    return y, kernel.asm["ll"]


def permutations(ll):
    return len(re.findall(r"call .*@llvm\.x86\.avx512\.(?:permvar|vpermi2var)", ll))


@pytest.mark.parametrize(("count", "lanes"), [(3, 2), (16, 16), (21, 8), (32, 32)])
def test_all_elements(count, lanes, rng, monkeypatch):
    if PERMUTES:
        monkeypatch.setattr(vector, "lanes", lambda vectors: ((lanes,), 1))
    tables = {k: rng.integers(0 if k[0] == "u" else -100, 100, count) for k in KINDS}
    x = rng.integers(0, count, 999, np.uint32)
    y, ll = run(kernel_text(tables, [f"{k}s[at]" for k in KINDS]), x, len(KINDS))
    for column, (kind, numbers) in zip(y.T, tables.items(), strict=True):
        np.testing.assert_array_equal(column, numbers[x].astype(KINDS[kind]))
    assert permutations(ll) == (PERMUTES and len(KINDS) * (2 if lanes > 16 else 1))


def test_any_index(rng):
    numbers = rng.integers(-1000, 1000, 32)
    indices = {
        "ints[at & 31]": lambda x: x & 31,
        "ints[at & 15]": lambda x: x & 15,
        "ints[at >> 27]": lambda x: x >> 27,
        "ints[(at & 15) + 7]": lambda x: (x & 15) + 7,
        "ints[20 - (at & 15)]": lambda x: 20 - (x & 15),
        "ints[at % 29]": lambda x: x % 29,
        "ints[ulong(at) * 5 & 31]": lambda x: x * 5 & 31,
        "ints[uchar(at) >> 4]": lambda x: (x & 255) >> 4,
    }
    x = rng.integers(0, 1 << 32, 999, np.uint32)
    y, ll = run(kernel_text({"int": numbers}, list(indices)), x, len(indices))
    for column, (expression, index) in zip(y.T, indices.items(), strict=True):
        np.testing.assert_array_equal(column, numbers[index(x)], err_msg=expression)
    assert permutations(ll) == (PERMUTES and 2 * len(indices))


def test_lanes_that_are_not_active_may_have_any_index(rng):
    numbers = rng.integers(-1000, 1000, 32)
    x = rng.integers(0, 1 << 32, 999, np.uint32)
    x[::2] = rng.integers(0, 40, x[::2].size)
    text = kernel_text({"int": numbers}, ["5"]).replace(
        "= 5;", "= 5; if (at < 32) y[i] = ints[at];"
    )
    y, _ = run(text, x, 1)
    expected = np.where(x < 32, numbers[np.minimum(x, 31)], 5)
    np.testing.assert_array_equal(y[:, 0], expected)


def test_a_table_of_more_than_two_registers_is_gathered(rng):
    numbers = rng.integers(0, 100, 33)
    x = rng.integers(0, 33, 999, np.uint32)
    y, ll = run(kernel_text({"int": numbers}, ["ints[at]"]), x, 1)
    np.testing.assert_array_equal(y[:, 0], numbers[x])
    assert permutations(ll) == 0
