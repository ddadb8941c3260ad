"""The IR of one thread of MLX's kernels: read, printed and read again, it is the same."""

from dataclasses import astuple
from pathlib import Path

import pytest
from mlx_headers import driver

import metalloid as mtl
from metalloid.backends.cpu.compile import vector
from metalloid.compiler.ir.parser import (
    flatten_address_spaces,
    parse_function,
    replace_function,
)

SOME = ("arange", "copy", "fft", "gemv", "quantized", "scan", "sort", "steel_gemm_fused", "unary")
OTHERS = sorted(
    {path.stem for path in (Path(__file__).parent / "drivers").glob("*.metal")} - {*SOME}
)


class Seen(Exception):
    """The IR that an engine was given, instead of code."""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """One where nothing is compiled yet."""
    with mtl.config.scope(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


@pytest.fixture
def thread_ir(monkeypatch):
    """A function: the IR of one thread of a kernel."""

    def lower(kernel, variant):
        raise Seen(flatten_address_spaces(kernel.ir))

    monkeypatch.setattr(vector, "lower", lower)

    def ir_of(lib, name):
        with mtl.config.scope(cpu_engine="simd"), pytest.raises(Seen) as seen:
            lib.function(name)
        return seen.value.args[0]

    return ir_of


def check(lib, name, ir_of):
    before = ir_of(lib, name)
    first = parse_function(before, "mtl_thread")
    second = parse_function(replace_function(before, first), "mtl_thread")
    assert (first.parameters, list(first.blocks)) == (second.parameters, list(second.blocks))
    assert [*map(astuple, first.instructions())] == [*map(astuple, second.instructions())]


@pytest.mark.parametrize(
    "name", [*SOME, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
)
@pytest.mark.needs("the CPU")
@pytest.mark.sample(2)
def test_the_first_kernel_of_a_driver(name, thread_ir):
    lib = driver.__wrapped__(name)  # one without compiled kernels
    check(lib, next(iter(lib.functions)), thread_ir)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SOME, *OTHERS])
def test_a_sample_of_the_others(name, thread_ir):
    lib = driver.__wrapped__(name)  # one without compiled kernels
    names = list(lib.functions)
    for kernel in names[1 :: len(names) // 8 + 1]:
        check(lib, kernel, thread_ir)


@pytest.mark.parametrize("file", ["examples/square.metal", "src/metalloid/cli/julia.metal"])
@pytest.mark.needs("the CPU")
def test_own_kernels(file, thread_ir):
    lib = mtl.library(path=file)
    for name in lib:
        check(lib, name, thread_ir)
