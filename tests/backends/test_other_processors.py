"""Vector code for arm64, run by an emulator: the same bits as here."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import random_kernels
from test_engines_agree import INDEPENDENT, results

import metalloid as mtl
from metalloid.backends.cpu import host, vector
from metalloid.backends.cpu.kernel_ir import kernel_ir
from metalloid.compiler import clang
from metalloid.compiler.cache import shared_cache
from metalloid.compiler.llvm.types import Unsupported
from metalloid.compiler.target import Target

HERE = Path(__file__).parent
NATIVE = Path(vector.__file__).parent / "native"
ARM64 = Target(
    "aarch64",
    ("-target", "aarch64-unknown-linux-gnu", "-fPIC", "-Xclang", "-ffake-address-space-map"),
    host.host_target().entry_header,
    "any",
)
NEON = ((8,), 32)


@pytest.fixture
def emulator():
    for name in ("qemu-aarch64", "qemu-aarch64-static"):
        if path := shutil.which(name):
            return path
    return pytest.skip("qemu-aarch64 is not installed")


def object_code(unit, name):
    """A kernel for arm64 as an object file, with its names its own; None if it has no vector form."""
    kernel = kernel_ir(unit, unit.kernels[name], {}, ARM64, shared_cache(), vector.functions)
    try:
        ir = vector.lower(kernel, "whole_8").ir
    except Unsupported:
        return None
    ir = re.sub(r"@mtl\b|@mtl_", f"@{name}_mtl_", ir)
    code = clang.run([*vector.CODE_COMMAND, "-target", ARM64.flags[1], "-c", "-o", "-", "-"], ir)
    assert code.status == 0, code.messages
    return code.output


def c_array(type, name, values):
    return f"static {type} {name}[] = {{{', '.join(map(str, values))}}};\n"


def executable(folder, objects, launches, ints, floats):
    """A program that makes the launches, statically linked."""
    entries = sorted({entry for entry, *_ in launches})
    rows = ", ".join(
        f"{{{entry}, {{{', '.join(map(str, grid))}}}, {{{', '.join(map(str, group))}}}, {u}}}"
        for entry, grid, group, u in launches
    )
    (folder / "launches.h").write_text(
        c_array("int", "ints", ints)
        + c_array("float", "floats", (float(x).hex() for x in floats))
        + "".join(f"mtl_entry {entry};\n" for entry in entries)
        + f"static const launch launches[] = {{{rows}}};\n#define OWNED {random_kernels.OWNED}\n"
    )
    for name, code in objects.items():
        (folder / f"{name}.o").write_bytes(code)
    files = [str(HERE / "other_processor.c"), *(str(folder / f"{name}.o") for name in objects)]
    program = folder / "program"
    made = clang.run(
        ["cc", "-target", "aarch64-linux-musl", "-static", f"-I{NATIVE}", f"-I{folder}", "-w",
         "-o", str(program), *files],
        scratch=folder,
    )  # fmt: skip
    assert made.status == 0, made.messages
    return program


@pytest.mark.slow
@pytest.mark.parametrize("seed", [400])
def test_arm64(seed, emulator, tmp_path, monkeypatch):
    text = random_kernels.library_text(seed, 2, waits=False)
    with mtl.config.scope(cpu_engine="reference"):
        lib = mtl.library(text, math_mode="safe")
        assert all(lib[name].engine.startswith("reference") for name in lib)
    monkeypatch.setattr(vector, "lanes", lambda: NEON)
    objects = {name: object_code(lib._unit, name) for name in lib}
    launches, expected = [], []
    for name in (name for name in lib if objects[name] is not None):
        for grid, group in INDEPENDENT:
            sizes = ((*size, 1, 1)[:3] for size in (grid, group))
            launches.append((f"{name}_mtl_kernel", *sizes, 3))
            expected += results(lib, name, grid, group, 3)
    made = {key: code for key, code in objects.items() if code is not None}
    assert len(made) >= len(objects) - 1
    rng = np.random.default_rng(5)  # as in `results`
    ints = rng.integers(-50, 50, random_kernels.INPUTS, dtype=np.int32)
    floats = rng.normal(size=random_kernels.INPUTS).astype(np.float32) * 4
    program = executable(tmp_path, made, launches, ints, floats)
    run = subprocess.run([emulator, str(program)], capture_output=True, timeout=300, check=True)
    got = np.frombuffer(run.stdout, np.int32)
    assert got.size == sum(a.size for a in expected)
    at = 0
    for number, a in enumerate(expected):
        b = got[at : at + a.size].view(a.dtype)
        at += a.size
        assert ((a == b) | ((a != a) & (b != b))).all(), launches[number // 2]
