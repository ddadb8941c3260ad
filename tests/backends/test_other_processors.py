"""Code for arm64, run by an emulator with our runtime: the same bits as here."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import random_kernels
from test_engines_agree import INDEPENDENT, WAITING, results

import metalloid as mtl
from metalloid.backends.cpu.runtime import native_library
from metalloid.compiler.toolchain import clang

HERE = Path(__file__).parent


@pytest.fixture
def emulator():
    for name in ("qemu-aarch64", "qemu-aarch64-static"):
        if path := shutil.which(name):
            return path
    return pytest.skip("qemu-aarch64 is not installed")


def object_code(program, name):
    """A kernel as an object file, with its names its own."""
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
        f"{{{entry}, {{{', '.join(map(str, grid))}}}, {{{', '.join(map(str, group))}}}, "
        f"{', '.join(map(str, numbers))}}}"
        for entry, grid, group, *numbers in launches
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
    result = clang.run(
        ["cc", "-target", "aarch64-linux-musl", "-static", f"-I{native_library.SOURCES}",
         f"-I{native_library.HEADERS}", f"-I{folder}", "-w",
         "-o", str(program), *files],
        scratch=folder,
    )  # fmt: skip
    assert result.status == 0, result.messages
    return program


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "seed", "waits"), [("simd", 400, False), ("reference", 401, True)]
)
def test_arm64(engine, seed, waits, emulator, tmp_path):
    text = random_kernels.library_text(seed, 2, waits=waits)
    with mtl.config.scope(cpu_engine="reference"):
        lib = mtl.library(text, math_mode="safe")
        assert all(lib[name].engine.startswith("reference") for name in lib)
    with mtl.config.scope(cpu_engine=engine):
        arm64 = mtl.library(text, math_mode="safe", target="cpu:aarch64")
        programs = {name: arm64[name]._program for name in lib}
    fitting = {key: each for key, each in programs.items() if each.engine.startswith(engine)}
    assert len(fitting) >= len(programs) - 1
    assert any(each.kernel.fibres for each in fitting.values()) == waits
    objects = native_library.objects("aarch64-linux-musl")
    objects |= {name: object_code(program, name) for name, program in fitting.items()}
    launches, expected = [], []
    for name, program in fitting.items():
        flags = native_library.FIBRES if program.kernel.fibres else 0
        for grid, group in WAITING if waits else INDEPENDENT:
            sizes = ((*size, 1, 1)[:3] for size in (grid, group))
            numbers = 3, flags, program.kernel.variable_bytes
            launches.append((f"{name}_mtl_kernel", *sizes, *numbers))
            expected += results(lib, name, grid, group, 3)
    rng = np.random.default_rng(5)  # as in `results`
    ints = rng.integers(-50, 50, random_kernels.INPUTS, dtype=np.int32)
    floats = rng.normal(size=random_kernels.INPUTS).astype(np.float32) * 4
    program = executable(tmp_path, objects, launches, ints, floats)
    run = subprocess.run([emulator, str(program)], capture_output=True, timeout=300, check=True)
    got = np.frombuffer(run.stdout, np.int32)
    assert got.size == sum(a.size for a in expected)
    at = 0
    for number, a in enumerate(expected):
        b = got[at : at + a.size].view(a.dtype)
        at += a.size
        assert ((a == b) | ((a != a) & (b != b))).all(), launches[number // 2]
