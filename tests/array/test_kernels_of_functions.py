"""Elementwise operations as code: vectors on the CPU, PTX for GPUs, and nothing left to a C library."""

import importlib.resources
import re

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.ir.dtypes import float64, kind_of, msl_name
from metalloid.arrays.ir.ops import MODULES, OPS
from metalloid.arrays.metal import metal_source
from metalloid.backends.cuda.compile.compile_ptx import compile_ptx
from metalloid.backends.cuda.compile.target import cuda_target
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.frontend.translate import translate
from metalloid.compiler.frontend.unit import Options
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.fft import kernels as transforms

_FILES = ("arrays", "complex", "complex_functions", "special")
_HEAD = "#include <metal_stdlib>\n"


def _kernel(dtype, rows, modules=MODULES):
    """MSL of one kernel that has some operations, each of which writes its result."""
    doubles = ["doubles/arithmetic", *(f"doubles/{module}" for module in modules)]
    files = dict.fromkeys([*_FILES, *(file for row in rows for file in row.file.split())])
    name = msl_name(dtype)
    stores = [
        f"*(device {msl_name(row.result(dtype))} *)(out + {1024 * k}) = {row.text.format('a', 'b')};"
        for k, row in enumerate(rows)
    ]
    return "\n".join([
        "#include <metal_stdlib>\nusing namespace metal;",
        metal_source(*doubles, *files),
        f"kernel void all(device const {name} *x [[buffer(0)]], device char *to [[buffer(1)]],",
        "uint i [[thread_position_in_grid]]) {", f"const {name} a = x[i], b = x[i + 1];",
        "device char *out = to + 16 * i;", *stores, "}",
    ])  # fmt: skip


def _rows(dtype):
    return [row for row in OPS.values() if kind_of(np.dtype(dtype)) in row.dtype_kinds]


def _ptx(text, suffix="all"):
    """PTX of the kernels whose names end so, after a look at what it calls."""
    target, cache = cuda_target("sm_90"), shared_cache()
    unit = translate(text, "program_source", Options(), target, cache)
    names = [name for name in unit.kernels if name.endswith(suffix)]
    texts = [compile_ptx(unit, unit.kernels[name], {}, target, cache).text for name in names]
    ptx = "\n".join(texts)
    assert ptx.count(f".visible .entry {ENTRY_SYMBOL}(") == len(names) > 0
    assert re.findall(r"^\.extern .func.*|\bcall\b.*", ptx, re.M) == []
    return ptx


@pytest.mark.parametrize(
    "dtype",
    [
        "float64",
        pytest.param("complex128", marks=pytest.mark.slow),
        "float32",
        "complex64",
        "bfloat16",
    ],
)
def test_every_operation_has_ptx(dtype):
    dtype = mtl.zeros(1, dtype=dtype).dtype
    rows = _rows(dtype)
    ptx = _ptx(_kernel(dtype, rows))
    assert len(re.findall(r"^\s+st\.global\S*\s", ptx, re.M)) >= len(rows)


@pytest.mark.parametrize("modules", sorted({row.doubles for row in OPS.values()}), ids=str)
def test_rows_name_the_chapters_that_they_take(modules):
    assert set(modules) <= set(MODULES)
    _ptx(_kernel(float64, [row for row in _rows(float64) if row.doubles == modules], modules))


def test_sorts_and_searches_have_ptx():
    x = mtl.arange(20_000, device="cpu")
    with mtl.config.scope(sorting="kernels"):
        results = mtl.top_k(x, 3)[1], mtl.searchsorted(x, x), mtl.histogram(x, range=(0, 9))[0]
        for result in results:
            for text in result.msl().split(_HEAD)[1:]:
                _ptx(_HEAD + text, "")


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["float", "double"])
def test_transforms_have_ptx(type_):
    _ptx(transforms.text(type_), "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    ["cli/julia", "bench/ceilings", "bench/kernels", "compat/Metal/blit",
     "compat/metalpy/metal_kernels"],
)  # fmt: skip
def test_kernels_of_the_package_have_ptx(file):
    _ptx((importlib.resources.files("metalloid") / f"{file}.metal").read_text("utf-8"), "")


@pytest.mark.slow
@pytest.mark.needs("the CPU")
def test_every_operation_on_doubles_is_vector_code():
    kernel = mtl.library(_kernel(float64, _rows(float64)))["all"]
    kernel(np.ones(65), np.zeros(1024 * len(OPS), np.int8), threads=64)
    if mtl.config.cpu_engine == "simd":
        assert kernel.engine.startswith("simd")
    machine_code = next(text for stage, text in kernel.asm.items() if stage not in ("cpp", "ll"))
    called = re.findall(r"^\s+(?:callq?|bl)\s+(\S+)", machine_code, re.M)
    assert {name for name in called if not name.startswith(("mtl_", "mtl."))} == set()
