"""The command line, as a user calls it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import metalloid as mtl
from metalloid.cli.main import main

BROKEN = "kernel void f(device float* x) {\n    x[0] = wrong;\n}\n"
WARNS = "kernel void f(device float* x) {\n    int unused = 1;\n    x[0] = 1;\n}\n"
SCALE = """#include <metal_stdlib>
using namespace metal;
constant int power [[function_constant(0)]];
kernel void scale(device float* y [[buffer(0)]], device const float* x [[buffer(1)]],
                  constant float& a [[buffer(2)]], uint i [[thread_position_in_grid]])
{ y[i] = a * x[i] + power; }
kernel void reverse(device int* x, threadgroup int* tile [[threadgroup(0)]],
                    uint i [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]])
{ tile[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup); x[i] = tile[n - 1 - i]; }
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.metal").write_text(SCALE)
    (tmp_path / "broken.metal").write_text(BROKEN)
    (tmp_path / "warns.metal").write_text(WARNS)
    return tmp_path


def test_run_with_files(files, capsys):
    x = np.arange(6, dtype=np.float32)
    np.save("x.npy", x)
    status = main(
        ["run", "scale.metal", "scale", "--threads", "6", "--arg", "zeros:6:float32", "--arg", "x.npy",
         "--arg", "2.5", "--constant", "power=3", "--save", "y=y.npy"]
    )  # fmt: skip
    assert status == 0
    np.testing.assert_array_equal(np.load("y.npy"), 2.5 * x + 3)
    out = capsys.readouterr().out
    assert out.startswith("scale: ")
    assert "  y: float32 (6,) [ 3.   5.5  8.  10.5 13.  15.5]\n" in out


def test_run_by_name_with_threadgroup_memory(files, capsys):
    np.save("x.npy", np.arange(8, dtype=np.int32))
    status = main(
        ["run", "scale.metal", "reverse", "--threads", "8", "--group-size", "8",
         "--arg", "tile=threadgroup:32", "--arg", "x=x.npy", "--save", "x=back.npy"]
    )  # fmt: skip
    assert status == 0
    assert np.load("back.npy").tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "no.metal", "f", "--threads", "1"], "[library] no such file: 'no.metal'."),
        (["run", "scale.metal", "f", "--threads", "1"], "[library] unknown kernel 'f'."),
        (["run", "scale.metal", "scale", "--threads", "x"], "[run] 'x' is not a size; write 1024 or 64,64."),
        (["run", "scale.metal", "scale", "--threads", "1", "--arg", "no.npy"], "[run] no such file: 'no.npy'."),
        (["run", "scale.metal", "scale", "--threads", "1", "--arg", "zeros:a"], "[run] 'zeros:a': "),
        (["run", "scale.metal", "scale", "--threads", "1", "--arg", "hello"], "[metalloid] 'hello' is neither"),
        (["run", "scale.metal", "scale", "--threads", "1"], "[scale] expects 3 arguments, got 0."),
        (["run", "broken.metal", "f", "--threads", "1"],
         "broken.metal:2:12: error: use of undeclared identifier 'wrong'\n    x[0] = wrong;\n"),
        (["run", "scale.metal", "reverse", "--threads", "1", "--arg", "ones:4:int32", "--save", "y=y.npy"],
         "[run] --save y=y.npy: unknown array 'y'; known: x."),
        (["run", "scale.metal", "reverse", "--threads", "1", "--arg", "ones:4:int32", "--save", "x="],
         "[run] --save x=: write NAME=FILE.npy."),
        (["run", "scale.metal", "reverse", "--threads", "1", "--arg", "ones:4:int32", "--save", "x=a/b.npy"],
         "[run] --save x=a/b.npy: its folder does not exist. Create it first."),
        (["demo", "--output", "no/folder.png"], "[demo] --output no/folder.png: its folder does not exist. Create it first."),
        (["demo", "--size", "8", "--output", "picture.xyz"], "[demo] --output picture.xyz: unknown file extension"),
        (["cache", "--trim", "lots"], "[cache] 'lots' is not a size; write 512M or 2G."),
        (["demo", "--size", "0"], "[demo] --size 0 is not between 1 and 32768."),
    ],
)  # fmt: skip
def test_errors_go_to_standard_error_and_the_status(files, capsys, arguments, message):
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(message)
    assert "Traceback" not in captured.err


def test_run_prints_warnings(files, capsys):
    assert main(["run", "warns.metal", "f", "--threads", "1", "--arg", "1,2"]) == 1  # it writes
    assert "warns.metal:2:9: warning: unused variable 'unused'" in capsys.readouterr().err


def test_check(files, capsys):
    assert main(["check", "scale.metal", "warns.metal"]) == 0
    captured = capsys.readouterr()
    assert (
        "warns.metal:2:9: warning: unused variable 'unused'\n    int unused = 1;\n        ^\n"
        in captured.err
    )
    assert captured.err.endswith("2 files checked, 0 with errors\n")
    assert main(["check", "scale.metal", "broken.metal", "missing.metal"]) == 1
    captured = capsys.readouterr()
    assert "broken.metal:2:12: error: use of undeclared identifier 'wrong'" in captured.err
    assert "no such file: 'missing.metal'" in captured.err
    assert captured.err.endswith("3 files checked, 2 with errors\n")


def test_check_as_json(files, capsys):
    assert main(["check", "--json", "broken.metal", "scale.metal"]) == 1
    broken, scale = json.loads(capsys.readouterr().out)["files"]
    assert not broken["ok"]
    assert broken["diagnostics"][0] == {
        "severity": "error", "file": "broken.metal", "line": 2, "column": 12,
        "message": "use of undeclared identifier 'wrong'", "source_line": "    x[0] = wrong;",
    }  # fmt: skip
    assert scale["ok"]
    assert scale["kernels"] == ["scale", "reverse"]


def test_check_takes_defines_and_folders(files, capsys):
    (files / "sub").mkdir()
    (files / "sub" / "value.h").write_text("#define VALUE NAME\n")
    (files / "uses.metal").write_text(
        '#include "value.h"\nkernel void f(device int* x) { x[0] = VALUE + FLAG; }'
    )
    assert main(["check", "-I", "sub", "-D", "NAME=3", "-D", "FLAG", "uses.metal"]) == 0
    capsys.readouterr()


def test_info(capsys):
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    for word in ("Devices", "cpu", "clang version", "Cache", "METALLOID_CACHE_DIR", "numpy"):
        assert word in out


def test_info_says_why_a_device_is_absent(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "metalloid", "info"],
        env={
            "METALLOID_CLANG": "/nowhere/zig",
            "METALLOID_CACHE_DIR": str(tmp_path),
            "COLUMNS": "200",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert "no cpu" in done.stdout
    assert "/nowhere/zig does not exist" in done.stdout


def test_cache(fresh_cache, capsys):
    assert main(["cache"]) == 0
    assert "0 entries, 0.0 MiB" in capsys.readouterr().out
    import metalloid as mtl

    _ = mtl.library("kernel void f(device int* x) { x[0] = 1; }").f
    assert main(["cache", "--trim", "1k"]) == 0
    assert "removed" in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0
    capsys.readouterr()
    assert main(["cache"]) == 0
    assert "0 entries" in capsys.readouterr().out


def test_info_shows_extras_in_brackets(capsys, monkeypatch):
    """As in ``pip install 'metalloid[cuda]'``: it is text, no markup."""
    from metalloid.cli import info

    monkeypatch.setattr(info, "_devices", lambda: [("no cuda", "pip install 'metalloid[cuda]'")])
    assert main(["info"]) == 0
    assert "pip install 'metalloid[cuda]'" in capsys.readouterr().out


def test_the_demo_writes_no_file_unasked(files, capsys):
    before = set(files.iterdir())
    assert main(["demo", "--size", "16"]) == 0
    assert "not saved; --output julia.png writes it to a file" in capsys.readouterr().out
    assert set(files.iterdir()) == before


def test_demo(files, capsys):
    assert main(["demo", "--size", "200", "--output", "picture.png"]) == 0
    out = capsys.readouterr().out
    assert "200 x 200 pixels" in out
    engine = mtl.library("kernel void f(device int* x) {}").f.engine.partition(": ")[0]
    assert f"engine   {engine}: " in out
    image = np.asarray(Image.open("picture.png"))
    assert image.shape == (200, 200, 4)
    # The set has no symmetry of colour, but it is the same after half a turn.
    assert (abs(image.astype(int) - image[::-1, ::-1]) <= 1).mean() > 0.99
    # The parameters differ in the last bit (sin), which tells at the set's own chaotic points only.
    assert (abs(image.astype(int) - julia(200, 51.0)) <= 1).mean() > 0.99


def julia(size, time):
    """The picture in NumPy float32, operation by operation as the kernel has them."""
    f = np.float32
    with np.errstate(all="ignore"):
        t = f(0.1) * f(time) + f(1.2) * np.sin(f(0.1) * f(time) * f(0.3828))
        amplitude = f(0.8) + f(0.2) * np.sin(t * f(9.119281))
        cx, cy = amplitude * np.sin(t), amplitude * np.cos(t)
        at = (
            (np.arange(size, dtype=f) + f(0.5) - f(0.5) * f(size))
            / f(size)
            * (f(4) + f(3) * np.sin(t))
        )
        x, y = np.meshgrid(at, at[::-1])
        count, squared, going = np.zeros_like(x), np.zeros_like(x), np.ones(x.shape, bool)
        for _ in range(100):
            new_x, new_y = (x * x - y * y) + cx, f(2) * x * y + cy
            x, y = np.where(going, new_x, x), np.where(going, new_y, y)
            squared = np.where(going, x * x + y * y, squared)
            going &= ~(squared > f(10000))
            count += going
        count -= np.log2(np.log(np.sqrt(squared)) / np.log(f(100))) - f(1)
        phase = np.log2(count) * f(8)
        channels = [
            np.fmin(np.fmax(f(0.5) + f(0.4) * np.sin(phase * f(k)), 0), 1)
            for k in (0.31, 0.53, 0.71)
        ]
    alpha = np.full(x.shape, 255, np.uint8)
    return np.stack([*((c * f(255) + f(0.5)).astype(np.uint8) for c in channels), alpha], axis=-1)
