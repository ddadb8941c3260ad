"""ggml's own file of kernels, where there is one: METALLOID_GGML names its folder."""

import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from ggml_tree.families import families
from ggml_tree.formats import FORMATS, decode, random_blocks
from ggml_tree.matmul import check_matrix
from ggml_tree.source import Source
from mlx_tree.agreement import Unchecked

import metalloid as mtl

FOLDER = os.environ.get("METALLOID_GGML", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (Path(FOLDER) / Source.FILE).is_file(),
        reason=f"METALLOID_GGML does not name the folder of ggml's {Source.FILE}",
    ),
]


@pytest.fixture(scope="module")
def library():
    return Source(FOLDER).library()


def test_the_text_gives_no_warnings(library):
    assert library.warnings == ()


def test_every_kernel_compiles(library):
    assert len(library) > 600
    failures = []
    for name in library:
        try:
            library.function(name)
        except mtl.MetalloidError as error:
            failures.append(f"{name}: {error}")
    assert failures == []


@pytest.mark.parametrize("family", families(FOLDER), ids=lambda family: family.name)
def test_kernels_agree_with_their_oracle(library, family):
    names = [name for name in library if family.covers(name)]
    assert names
    for name in names:
        try:
            family.check(library, name, np.random.default_rng(zlib.crc32(name.encode())))
        except Unchecked:
            continue
        except (AssertionError, mtl.MetalloidError) as error:
            raise AssertionError(f"{name}: {error}") from error


@pytest.mark.parametrize(
    "name", ["mul_mm_f32_f32", "mul_mm_f16_f16", "mul_mm_bf16_f32", "mul_mm_q4_0_f32"]
)
def test_products_by_tensors(name, rng):
    source = Source(FOLDER, tensors=True)
    check_matrix(source, source.library(), f"kernel_{name}", rng)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "q1_0"])
def test_formats_are_those_of_the_gguf_package(name, rng):
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
    blocks = random_blocks(name, (5, 1024), rng)
    values, magnitudes = decode(name, blocks, Source(FOLDER).tables)
    type_ = getattr(gguf.GGMLQuantizationType, name.upper())
    theirs = gguf.quants.dequantize(blocks.view(np.uint8).reshape(5, -1), type_)
    assert np.all(np.abs(theirs - values) <= 2e-7 * magnitudes)
