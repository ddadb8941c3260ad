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
from metalloid.backends.cpu import vector
from metalloid.compiler import clang

HERE = Path(__file__).parent
NATIVE = Path(vector.__file__).parent / "native"


@pytest.fixture
def emulator():
    for name in ("qemu-aarch64", "qemu-aarch64-static"):
        if path := shutil.which(name):
            return path
    return pytest.skip("qemu-aarch64 is not installed")


def object_code(lib, name):
    """A kernel as an object file, with its names its own; None if it has no vector form."""
    program = lib.function(name)._program
    if not program.engine.startswith("simd"):
        return None
    ir = re.sub(r"@mtl\b|@mtl_", f"@{name}_mtl_", program.asm["ll"])
    code = clang.run([*program.kernel.code_command, "-c", "-o", "-", "-"], ir)
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
def test_arm64(seed, emulator, tmp_path):
    text = random_kernels.library_text(seed, 2, waits=False)
    with mtl.config.scope(cpu_engine="reference"):
        lib = mtl.library(text, math_mode="safe")
        assert all(lib[name].engine.startswith("reference") for name in lib)
    arm64 = mtl.library(text, math_mode="safe", target="cpu:aarch64")
    objects = {name: object_code(arm64, name) for name in lib}
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
