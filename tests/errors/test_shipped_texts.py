"""Every kernel that is shipped or generated passes ``portable=True``; those for float64 excepted.

The generated ones by themselves are in tests/array/test_generated_msl.py and tests/portable.
"""

from pathlib import Path

import numpy as np
import pytest

import metalloid as mtl
from metalloid.arrays.codegen.kernel_source import render
from metalloid.arrays.execution.executable import full_text
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.library import scan as scan_kernels
from metalloid.arrays.library import sort as sort_kernels
from metalloid.arrays.library import window as window_kernels
from metalloid.arrays.metal import metal_source
from metalloid.arrays.planning.plan import make_plan
from metalloid.fft import kernels as transforms

PACKAGE = Path(mtl.__file__).parent
EXAMPLES = Path(__file__).parents[2] / "examples"
HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
#: What functions of arrays are made of, in the order of generated texts.
FUNCTIONS = (
    "arrays", "reductions", "complex", "complex_functions", "value_index", "random", "special", "products",
    "wide", "wide_products", "tensor_blocks", "tensor_products",
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


def library_calls():
    """The texts of prefix scans of rows, of chunks of rows, and of columns; and of sorts."""
    long, wide = (mtl.ones(shape, device="cpu") for shape in ((20_000,), (9, 100)))
    results = mtl.cumulative_sum(long), mtl.cumulative_prod(wide, axis=0), mtl.argsort(long)
    for result in results:
        planner = make_plan(LinearizedGraph([result._node]))
        for step in planner.steps:
            yield full_text(render(step, planner.sources, planner.traits))


#: Texts that are put together of several files.
JOINED = {
    "sorting": sort_kernels.text,
    "functions": functions,
    "running sums": lambda: scan_kernels.text("cumulative_sum", "float"),
    "windows": lambda: window_kernels.text(np.dtype(np.float32), "int"),
    "transforms": lambda: transforms.text("float"),
    "reduction": reduction,
    "scan": scan,
}
SHIPPED = sorted(PACKAGE.rglob("*.metal"))
IN_JOINED = {path for path in SHIPPED if path.parent.name in ("metal", "fft", "kernels")}
ALONE = [path for path in (*SHIPPED, *sorted(EXAMPLES.glob("*.metal"))) if path not in IN_JOINED]


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.name)
def test_files(path):
    mtl.library(path=path, portable=True)


def test_joined_texts():
    """Every other file of the package is part of one, or written in doubles."""
    texts = {name: make() for name, make in JOINED.items()}
    texts |= dict(enumerate(library_calls()))
    for text in texts.values():
        mtl.library(text, portable=True)
    utilities = "metal_kernel_utils.metal"  # as a whole; texts have what they use of it
    mtl.library(path=PACKAGE / "kernels" / utilities, portable=True)
    left = {
        path.name for path in IN_JOINED
        if not any(path.read_text().strip() in text for text in texts.values())
    }  # fmt: skip
    assert left - {utilities} == {name for name in left if name.startswith("doubles")}
    assert all("double" in path.read_text() for path in IN_JOINED if "doubles" in path.name)
