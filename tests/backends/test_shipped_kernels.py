"""The kernels people see first are vector code: a fall to the other engine would only be slow."""

from pathlib import Path

import pytest

import metalloid as mtl

PACKAGE = Path(mtl.__file__).parent
EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = [PACKAGE / "cli/julia.metal", PACKAGE / "bench/kernels.metal", *EXAMPLES.glob("*.metal")]


@pytest.mark.needs("the CPU")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_they_are_vector_code(path):
    library = mtl.library(path=path)
    with mtl.config.scope(cpu_engine="simd"):
        engines = {name: library[name].engine for name in library.functions}
    assert engines
    assert {name for name, engine in engines.items() if not engine.startswith("simd: ")} == set()
