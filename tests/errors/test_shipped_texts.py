"""Every kernel that is shipped or generated passes ``portable=True``; those for float64 excepted.

The generated ones by themselves are in tests/array/test_generated_msl.py and tests/portable.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.codegen.kernel_source import render
from metalloid.arrays.execution.compilation import full_text
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.primitives import lower
from metalloid.arrays.library import scatter as scatter_kernels
from metalloid.arrays.library.order_statistics import elements_in_order
from metalloid.arrays.library.partition import partitioned
from metalloid.arrays.metal import metal_source
from metalloid.arrays.planning.plan import make_plan
from metalloid.arrays.planning.schedule import CallStep
from metalloid.fft import kernels as transforms
from metalloid.runtime.devices import registry

PACKAGE = Path(mtl.__file__).parent
EXAMPLES = Path(__file__).parents[2] / "examples"
HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
#: What functions of arrays are made of, in the order of generated texts.
FUNCTIONS = (
    "arrays", "reductions", "complex", "complex_functions", "value_index", "random", "special", "wide",
    "integers", "bessel", "rejection", "cube_root", "compaction", "small_matrices",
    *(
        f"products/{name}"
        for name in ("products", "tiles", "panels", "vectors", "packing", "wide_products",
                     "tensor_blocks", "tensor_products")
    ),
    "nn/lanes", "nn/attention", "nn/attention_simt", "nn/quantized",
    "nn/quantized_integers", "nn/quantized_simt",
)  # fmt: skip


def functions():
    return HEADER + metal_source(*FUNCTIONS)


def reduction():
    kernel = mtl.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = a", "0", name="dot")
    kernel(*np.ones((2, 3), np.float32))
    return kernel.source


def scan():
    kernel = mtl.ScanKernel("T x", "T y", "x", "a + b", "0", "y = a", name="running")
    kernel(np.ones(3, np.float32))
    return kernel.source


def adjoint(parameter, statements):
    """The text of the adjoint of a kernel of x and y."""
    library = mtl.library(f"""{HEADER}
kernel void f({parameter} x, device float *y, uint i [[thread_position_in_grid]]) {{ {statements} }}""")
    return library.f.vjp().source


SAMPLE = """
constexpr sampler by_pixel(coord::pixel, filter::linear);
y[i] = x.sample(by_pixel, float2(i)).x;"""
SQUARE = """
simdgroup_float8x8 a, b = simdgroup_float8x8(0);
simdgroup_load(a, x);
simdgroup_multiply_accumulate(b, a, a, b);
simdgroup_store(b, y);"""


def library_calls(monkeypatch):
    """The texts of prefix scans, sorts, searches, windows, and Fourier transforms of rows."""
    long, wide = (mtl.ones(shape, device="cpu") for shape in ((20_000,), (9, 100)))
    scans = [mtl.cumulative_sum(long), mtl.cumulative_prod(wide, axis=0)]
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1]), *sys.path])
    monkeypatch.setitem(registry._KINDS, "own", "own_memory_device")  # an SIMT device
    own = mtl.ones(20_000, device="own:0")
    scans.append(mtl.cummax(own))
    sorts = [mtl.argsort(long), mtl.sort(own), mtl.top_k(long, 3)[0]]
    with mtl.config.scope(sorting="kernels"):
        sorts.append(mtl.searchsorted(long, long))
    positions = mtl.zeros((1, 2), dtype=mtl.int32, device="cpu")
    row = long.reshape(1, -1)
    sorts.append(mtl.Array(elements_in_order(row._node, positions._node)))
    sorts.append(mtl.Array(partitioned(row._node, row[:, :1]._node, False)))
    images, filters = mtl.ones((1, 9, 9, 4), device="cpu"), mtl.ones((8, 3, 3, 4), device="cpu")
    windows = [
        mtl.conv2d(images, filters),
        mtl.conv2d(images, filters[:2]),
        mtl.max_pool(images, 3),
    ]
    return texts_of(*scans, *sorts, *windows, mtl.fft.rfft(mtl.ones(4096, device="cpu")))


def scatters(monkeypatch):
    """The texts of every method."""
    i = mtl.asarray([0, 2, 2], device="cpu")
    for how, dtype, function in [
        (scatter_kernels.IN_ORDER, mtl.float32, "add"),
        (scatter_kernels.LAST, mtl.float16, "set"),
        (scatter_kernels.SORTED, mtl.complex64, "multiply"),
        (scatter_kernels.ATOMIC, mtl.int8, "add"),
        (scatter_kernels.ATOMIC, mtl.int64, "add"),
        (scatter_kernels.ATOMIC, mtl.float32, "add"),
        (scatter_kernels.ATOMIC, mtl.complex64, "add"),
        (scatter_kernels.ATOMIC, mtl.bfloat16, "max"),
    ]:
        monkeypatch.setattr(scatter_kernels, "_method", lambda *_, how=how: how)
        x = mtl.ones(4, dtype=dtype, device="cpu")
        yield from texts_of(getattr(x.at[i], function)(x[1:]))


def texts_of(*results):
    for result in results:
        lower([result._node])
        planner = make_plan(LinearizedGraph([result._node]))
        kernels = (step for step in planner.steps if not isinstance(step, CallStep))
        for step in kernels:
            yield full_text(render(step, planner.sources, planner.traits))


#: Texts that are put together of several files.
JOINED = {
    "functions": functions,
    "transforms": lambda: transforms.text("float"),
    "reduction": reduction,
    "scan": scan,
    "adjoint of a sample": lambda: adjoint("texture2d<float>", SAMPLE),
    "adjoint of a product": lambda: adjoint("device const float *", SQUARE),
}
SHIPPED = sorted(PACKAGE.rglob("*.metal"))
FOLDERS = "metal", "doubles", "products", "sorts", "nn", "fft", "kernels", "builders"
IN_JOINED = {path for path in SHIPPED if path.parent.name in FOLDERS}
ALONE = [path for path in (*SHIPPED, *sorted(EXAMPLES.glob("*.metal"))) if path not in IN_JOINED]


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.name)
def test_files(path):
    mtl.library(path=path, portable=True)


def test_joined_texts(monkeypatch):
    """Every other file of the package is part of one, or written in doubles."""
    texts = {name: make() for name, make in JOINED.items()}
    texts |= dict(enumerate([*library_calls(monkeypatch), *scatters(monkeypatch)]))
    # One of those that differ in numbers only; expressions have tests of their own.
    kinds = {re.sub(r"\d+", "0", text): text for text in texts.values()}
    for text in kinds.values():
        if not re.search(r"kernel void array\w*\(", text):
            mtl.library(text, portable=True)
    utilities = "metal_kernel_utils.metal"  # as a whole; texts have what they use of it
    mtl.library(path=PACKAGE / "kernels" / utilities, portable=True)
    left = {
        path for path in IN_JOINED
        if not any(path.read_text().strip() in text for text in texts.values())
    }  # fmt: skip
    left.remove(PACKAGE / "kernels" / utilities)
    assert {path.parent.name for path in left} == {"doubles"}
    assert all("double" in path.read_text() for path in left)
