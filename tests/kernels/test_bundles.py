"""Bundles of compiled kernels: they run without a compiler, and what does not fit is refused."""

import itertools
import os
import pickle
import platform
import subprocess
import sys
import zipfile

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import metalloid as mtl
from metalloid.backends.cpu.compile.variants import Kind, Variant, shipped_variants, substitutes
from metalloid.kernels.bundles import container

SOURCE = """#include <metal_stdlib>
using namespace metal;
constant float factor [[function_constant(0)]];

kernel void scale(device float* x, constant uint& n, uint i [[thread_position_in_grid]]) {
    if (i < n) x[i] = factor * x[i];
}

kernel void transpose(device const float* x, device float* y, uint2 p [[thread_position_in_grid]],
                      uint2 t [[thread_position_in_threadgroup]],
                      uint2 n [[threads_per_threadgroup]], uint2 grid [[threads_per_grid]]) {
    threadgroup float tile[1024];
    tile[t.y * n.x + t.x] = x[p.y * grid.x + p.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[p.y * grid.x + p.x] = tile[(t.y * n.x + t.x + 1) % (n.x * n.y)];
}
"""
ARCHITECTURE = "aarch64" if platform.machine().lower() in ("aarch64", "arm64") else "x86-64-v2"
TARGETS = [f"cpu:{ARCHITECTURE}", "cuda:sm_75"]
pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="bundles have code for CPUs on Linux only"
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    file = tmp_path_factory.mktemp("bundle") / "kernels.mtlb"
    mtl.save_library(file, SOURCE, targets=TARGETS, constants={"factor": 3.0})
    return file


@pytest.fixture(scope="module")
def bundled(bundle):
    return mtl.load_library(bundle, "cpu")


@pytest.fixture(scope="module")
def compiled():
    return mtl.library(SOURCE, device="cpu")


def test_functions_and_signatures(bundled, compiled):
    assert bundled.functions == compiled.functions == ("scale", "transpose")
    assert bundled.warnings == compiled.warnings == ()
    constants = {"factor": 3.0}
    for name in bundled:
        assert str(bundled[name].signature) == str(compiled.function(name, constants).signature)
    assert bundled.source == SOURCE
    with pytest.raises(mtl.UnknownFunction, match="Did you mean 'scale'"):
        _ = bundled.scal


@hypothesis.given(
    st.integers(1, 40), st.integers(1, 24), st.integers(1, 24), st.integers(1, 12), st.data()
)
@hypothesis.settings(max_examples=15)
def test_launches_of_all_shapes_have_the_same_bits(bundled, compiled, x, y, across, down, data):
    group = (x, data.draw(st.sampled_from([1, min(y, 1024 // x)])))
    grid = (group[0] * across, group[1] * down)
    values = np.random.default_rng(x).random(grid[::-1], np.float32)
    results = []
    for lib in (bundled, compiled):
        out = np.zeros_like(values)
        lib.function("transpose", {"factor": 3.0} if lib is compiled else None)(
            values, out, threads=grid, group_size=group
        )
        results.append(out)
    np.testing.assert_array_equal(*results)
    assert results[0].any() or not values.any()


@pytest.mark.parametrize("size", [1, 31, 32, 1000, 100_003])
def test_grids_of_independent_threads(bundled, size):
    values = np.arange(size, dtype=np.float32)
    bundled.scale(values, size, threads=size)
    np.testing.assert_array_equal(values, 3 * np.arange(size, dtype=np.float32))


def test_accesses_are_checked_with_lines(bundled):
    values = np.ones(8, np.float32)
    with pytest.raises(mtl.KernelFault, match=r"index 8 of 'x', which has 8 elements") as fault:
        bundled.scale(values, 9, threads=9)
    assert "if (i < n) x[i] = factor * x[i];" in str(fault.value)
    np.testing.assert_array_equal(values, np.full(8, 3, np.float32))


def test_what_only_a_compiler_can_do_is_refused(bundled):
    with pytest.raises(mtl.MetalloidError, match="machine code only"):
        _ = bundled.scale.asm
    with pytest.raises(mtl.ArgumentError, match="function constants of a bundle"):
        bundled.function("scale", {"factor": 2.0})
    relaxed = mtl.config.scope(strict_barriers=False)
    with relaxed, pytest.raises(mtl.DeviceUnavailable, match="METALLOID_STRICT_BARRIERS"):
        bundled.transpose(np.ones(4, np.float32), np.ones(4, np.float32), threads=4)


def test_libraries_and_kernels_are_pickled_by_file(bundled):
    values = np.ones(4, np.float32)
    pickle.loads(pickle.dumps(bundled)).scale(values, 4, threads=4)
    pickle.loads(pickle.dumps(bundled.scale))(values, 4, threads=4)
    assert values.tolist() == [9.0] * 4


def test_the_same_source_makes_the_same_bytes(bundle, tmp_path):
    second = tmp_path / "second.mtlb"
    mtl.save_library(second, SOURCE, targets=TARGETS, constants={"factor": 3.0})
    assert second.read_bytes() == bundle.read_bytes()


def test_source_can_be_left_out(tmp_path):
    file = tmp_path / "kernels.mtlb"
    mtl.save_library(
        file, SOURCE, targets=["cuda:sm_75"], kernels=["scale"], constants={"factor": 3.0},
        include_source=False,
    )  # fmt: skip
    assert "source.metal" not in zipfile.ZipFile(file).namelist()
    with pytest.raises(mtl.BundleError, match=r"it has no code for cpu.* code for cuda:sm_75"):
        mtl.load_library(file, "cpu")


def test_entries_of_ptx_have_the_names_of_kernels(bundle):
    with zipfile.ZipFile(bundle) as archive:
        ptx = archive.read("cuda:sm_75/0/0.ptx").decode()
    assert ".visible .entry" in ptx
    text = mtl.library(SOURCE, target="cuda:sm_75").function("scale", {"factor": 3.0}).asm["ptx"]
    assert ".entry scale(" in text


# Files that are no bundles.


@pytest.mark.parametrize("position", [0, 100, 5000, -200, -1])
def test_damaged(bundle, tmp_path, position):
    data = bytearray(bundle.read_bytes())
    data[position] ^= 0x20
    (tmp_path / "damaged.mtlb").write_bytes(data)
    with pytest.raises(mtl.BundleError, match=r"is damaged|not a bundle"):
        mtl.load_library(tmp_path / "damaged.mtlb", "cpu")


@pytest.mark.parametrize("size", [0, 10, 5000, -1])
def test_truncated(bundle, tmp_path, size):
    (tmp_path / "short.mtlb").write_bytes(bundle.read_bytes()[:size])
    with pytest.raises(mtl.BundleError, match=r"is damaged|not a bundle"):
        mtl.load_library(tmp_path / "short.mtlb", "cpu")


def test_other_formats_and_versions(bundle, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        mtl.load_library(tmp_path / "missing.mtlb")
    read = container.Container(bundle)
    index = read.index | {
        "metalloid": "9.9", "targets": {name: {"abi": "other"} for name in read.index["targets"]}
    }  # fmt: skip
    container.write_container(tmp_path / "other.mtlb", index, {}, "")
    with pytest.raises(mtl.BundleError, match=r"of metalloid 9\.9, whose launches are different"):
        mtl.load_library(tmp_path / "other.mtlb", "cpu")
    monkeypatch.setattr(container, "FORMAT", 2)
    container.write_container(tmp_path / "later.mtlb", {}, {}, "")
    monkeypatch.undo()
    with pytest.raises(mtl.BundleError, match="this version of metalloid reads format 1"):
        mtl.load_library(tmp_path / "later.mtlb", "cpu")


@pytest.mark.parametrize("targets", [[], "cpu:x86-64-v2"])
def test_targets_are_a_list(targets, tmp_path):
    with pytest.raises(mtl.ArgumentError, match=r"targets must be a list"):
        mtl.save_library(tmp_path / "x.mtlb", SOURCE, targets=targets)


def test_macs_are_no_targets_and_the_old_file_stays(tmp_path):
    file = tmp_path / "kernels.mtlb"
    file.write_bytes(b"old")
    with pytest.raises(mtl.DeviceUnavailable, match="for Linux only"):
        mtl.save_library(file, SOURCE, targets=["cpu:aarch64-macos"])
    assert file.read_bytes() == b"old"


# Without a compiler.

RUN = """
import sys, numpy as np, metalloid as mtl
x = np.ones(5, np.float32)
lib = mtl.load_library(sys.argv[1], "cpu")
lib.scale(x, 5, threads=5)
out = np.zeros(64, np.float32)
lib.transpose(np.arange(64, dtype=np.float32), out, threads=(8, 8), group_size=(8, 8))
print(x.tolist(), out[:3].tolist(), lib.scale.engine)
try:
    mtl.library("kernel void f(device int* x) { *x = 1; }", device="cpu").f
except mtl.DeviceUnavailable as error:
    print(error)
"""


def _run(program, *arguments, **environment):
    environment = os.environ | {"METALLOID_CLANG": "/nonexistent/zig"} | environment
    command = [sys.executable, "-W", "error", "-c", program, *map(str, arguments)]
    return subprocess.run(command, env=environment, text=True, capture_output=True, check=False)


def test_without_a_compiler_and_with_an_empty_cache(bundle, tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    outcome = _run(RUN, bundle, METALLOID_CACHE_DIR=str(folder))
    first, second = outcome.stdout.splitlines()
    assert first.startswith("[3.0, 3.0, 3.0, 3.0, 3.0] [1.0, 2.0, 3.0] simd: ")
    assert "no clang: /nonexistent/zig does not exist" in second


def test_what_has_been_compiled_runs_when_the_compiler_is_gone():
    known = "kernel void f(device int* x, uint i [[thread_position_in_grid]]) { x[i] = i; }"
    values = np.zeros(4, np.int32)
    mtl.library(known, device="cpu").f(values, threads=4)
    outcome = _run(f"""
import numpy as np, metalloid as mtl, secrets
x = np.zeros(4, np.int32)
mtl.library({known!r}, device="cpu").f(x, threads=4)
print(x.tolist())
mtl.library({known!r} + "//" + secrets.token_hex(), device="cpu").f
""")
    assert outcome.stdout == "[0, 1, 2, 3]\n"
    assert "DeviceUnavailable: [compiler] no clang" in outcome.stderr


def test_loading_imports_neither_the_compiler_nor_what_few_programs_need(bundle):
    outcome = _run(
        "import sys, numpy; before = set(sys.modules); import metalloid as mtl\n"
        "mtl.load_library(sys.argv[1], 'cpu').transpose; print(*(set(sys.modules) - before))",
        bundle,
    )
    imported = set(outcome.stdout.split())
    own = {name for name in imported if name.partition(".")[0] == "metalloid"}
    assert "metalloid.backends.cpu.runtime.program" in own
    # Each takes about 0.3 ms.
    assert len(own) < 90, sorted(own)
    unneeded = (
        "metalloid.arrays", "metalloid.backends.cpu.compile.engines", "metalloid.msl.tokens",
        "metalloid.runtime.launch.log_messages", "metalloid.runtime.textures", "concurrent.futures",
        "html", "logging", "secrets", "subprocess", "sysconfig",
    )  # fmt: skip
    assert not imported.intersection(unneeded)


# Which variants a bundle needs.


@pytest.mark.parametrize("waits", [False, True])
def test_every_variant_has_a_substitute(waits):
    widths = (32, 16, 8)
    kinds = list(Kind) if waits else [Kind.FULL, Kind.TAIL]
    initial = Variant(Kind.SINGLE_ROW, 32, group=(64, 1, 1)) if waits else Variant(Kind.FULL, 32)
    shipped = set(shipped_variants(initial, widths, waits))
    for kind, width, group, axis, streams in itertools.product(
        kinds, widths, (None, (64, 1, 1)), "xyz", (False, True)
    ):
        variant = Variant(kind, width, group=group, axis=axis, streams=streams)
        assert shipped & set(substitutes(variant, widths, waits)), variant
