"""Plays what a newcomer tries, in a fresh environment from the built wheel: prints the time of each.

``python tools/newcomer.py`` builds the wheel; ``--wheel FILE`` takes one; ``--python PATH`` uses an
environment that has metalloid. Each task is a program of its own, whose caches start empty.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

START = '''
import metalloid as mtl, numpy as np
SAXPY = """
#include <metal_stdlib>
using namespace metal;
struct P { float3 position; float mass; };
kernel void saxpy(device float *y, device const float *x, constant float &a,
                  uint i [[thread_position_in_grid]]) { y[i] = fma(a, x[i], y[i]); }
kernel void heavy(device P *p, uint i [[thread_position_in_grid]]) { p[i].mass *= 2; }
kernel void count(device atomic_uint *n) { atomic_fetch_add_explicit(n, 1u, memory_order_relaxed); }
kernel void halve(device half *h, device bfloat *b, uint i [[thread_position_in_grid]])
{ h[i] = h[i] / 2; b[i] = b[i] * 2; }
"""
x = np.arange(8, dtype=np.float32)


def refused(kind, *words):
    """A context that wants an exception with these words in its text."""
    import contextlib

    @contextlib.contextmanager
    def expect():
        try:
            yield
        except kind as error:
            for word in words:
                assert word in str(error), (word, str(error))
        else:
            raise AssertionError(f"no {kind.__name__}")

    return expect()
'''

#: Title, and a program; a program that starts with $ is a command of a shell.
TASKS = [
    ("the demo draws a picture", "$ metalloid demo --size 64 --output julia.png && test -s julia.png"),
    ("info names how to get GPUs", "$ metalloid info | grep -F 'metalloid[cuda]' || metalloid info | grep -i nvidia"),
    ("saxpy", "y = x.copy()\nmtl.library(SAXPY).saxpy(y, x, 2.5, threads=8)\nassert (y == 3.5 * x).all()"),
    ("a struct's dtype", "lib = mtl.library(SAXPY)\np = np.ones(3, lib.heavy.dtype('p'))\n"
     "lib.heavy(p, threads=3)\nassert (p['mass'] == 2).all() and p.dtype.itemsize == 32"),
    ("a dtype with other offsets is refused",
     "lib = mtl.library(SAXPY)\nwrong = np.dtype({'names': ['position', 'mass'], 'formats': ['3f4', 'f4'],"
     " 'offsets': [0, 12], 'itemsize': 32})\n"
     "with refused(mtl.ArgumentError, 'mass'):\n    lib.heavy(np.zeros(3, wrong), threads=3)"),
    ("atomics", "n = np.zeros(1, np.uint32)\nmtl.library(SAXPY).count(n, threads=1000)\nassert n[0] == 1000"),
    ("half and bfloat", "import ml_dtypes\nh, b = np.ones(4, np.float16), np.ones(4, ml_dtypes.bfloat16)\n"
     "mtl.library(SAXPY).halve(h, b, threads=4)\nassert (h == 0.5).all() and (b == 2).all()"),
    ("an unknown keyword is named",
     "with refused(TypeError, 'grid', 'threads'):\n    mtl.library(SAXPY).saxpy(x.copy(), x, 1, grid=8)"),
    ("threads that are no integer",
     "with refused((TypeError, mtl.ArgumentError), 'threads'):\n    mtl.library(SAXPY).saxpy(x.copy(), x, 1.0, threads=8.5)"),
    ("a misspelt kernel", "with refused(AttributeError, 'saxpy'):\n    mtl.library(SAXPY).saxpi"),
    ("a misspelt function", "with refused(AttributeError, 'linspace'):\n    mtl.linspce"),
    ("a path instead of a text",
     "with refused(mtl.ArgumentError, 'path='):\n    mtl.library('kernels.metal')"),
    ("a function without the include",
     "with refused(mtl.CompileError, 'metal'):\n"
     "    mtl.library('kernel void f(device float *x) { x[0] = sin(x[0]); }')"),
    ("printf leads to os_log",
     "with refused(mtl.CompileError, 'os_log'):\n"
     "    mtl.library('kernel void f() { printf(\"hello\"); }')"),
    ("os_log is seen", "$ python -c \"import metalloid as mtl; mtl.library('#include <metal_logging>\\n"
     "kernel void f() { metal::os_log_default.log(\\\"hello %d\\\", 7); }').f(threads=1)\" 2>&1 | grep 'hello 7'"),
    ("shaders are refused by name",
     "with refused(mtl.MetalloidError, 'fragment'):\n"
     "    mtl.library('fragment float4 f() { return 1; }')"),
    ("a folder as a str", "import os\nos.mkdir('inc')\nopen('inc/a.h', 'w').write('#define A 3')\n"
     "lib = mtl.library('#include \"a.h\"\\nkernel void f(device int *x) { x[0] = A; }', include_dirs='inc')\n"
     "n = np.zeros(1, np.int32)\nlib.f(n, threads=1)\nassert n[0] == 3"),
    ("function constants", "lib = mtl.library('constant int c [[function_constant(0)]];"
     " kernel void f(device int *x) { x[0] = c; }')\nn = np.zeros(1, np.int32)\n"
     "lib.function('f', {'c': 5})(n, threads=1)\nassert n[0] == 5"),
    ("a texture from a picture", "from PIL import Image\npicture = np.asarray(Image.new('RGBA', (4, 4), (0, 51, 255, 255))).copy()\n"
     "lib = mtl.library('#include <metal_stdlib>\\nusing namespace metal;\\nkernel void f(texture2d<float> t, device float4 *x)"
     " { x[0] = t.read(uint2(1, 1)); }')\nout = np.zeros((1, 4), np.float32)\nlib.f(picture, out, threads=1)\n"
     "assert np.allclose(out, [0, 0.2, 1, 1])"),
    ("an index past the end", "with refused(mtl.KernelFault, 'index'):\n    mtl.library(SAXPY).saxpy(x.copy(), x, 1.0, threads=9)"),
    ("a race is found", "lib = mtl.library('#include <metal_stdlib>\\nkernel void f(device int *x, uint i [[thread_position_in_grid]])"
     " { x[0] = i; }')\nwith refused(mtl.SanitizerError, 'race'):\n    lib.f(np.zeros(1, np.int32), threads=64, check=True)"),
    ("settings are readable", "assert 'cache_dir' in repr(mtl.config)\n"
     "with refused(AttributeError, 'cache_dir'):\n    mtl.config.cache_dri = 'x'"),
    ("a misspelt variable warns", "$ METALLOID_CPU_ENGIN=simd python -W always -c 'import metalloid as mtl; mtl.devices()' 2>&1"
     " | grep METALLOID_CPU_ENGINE"),
    ("an unknown engine lists the known", "$ METALLOID_CPU_ENGINE=foo python -c 'import metalloid as mtl; "
     "mtl.library(\"kernel void f() {}\").f(threads=1)' 2>&1 | grep reference"),
    ("a kernel from a shell, with -D",
     "$ printf '#include <metal_stdlib>\\nkernel void f(device const float *x, device float *y, uint i [[thread_position_in_grid]])"
     " { y[i] = F * x[i]; }' > f.metal && metalloid run f.metal f -D F=3 --threads 2 --arg 1,2"
     " --arg y=zeros:2:float32 | grep '3. 6.'"),
    ("a bundle without a compiler", "mtl.save_library('k.mtlb', SAXPY, targets=['cpu:x86-64-v2', 'cpu:aarch64'])\n"
     "import subprocess, sys\nsubprocess.run([sys.executable, '-c', '''import sys; sys.modules[\"ziglang\"] = None\n"
     "import metalloid as mtl, numpy as np\ny = np.ones(2, np.float32)\n"
     "mtl.load_library(\"k.mtlb\").saxpy(y, y.copy(), 1.0, threads=2)\nassert y[0] == 2'''], check=True)"),
    ("kernels are pickled", "import pickle\nk = pickle.loads(pickle.dumps(mtl.library(SAXPY).saxpy))\n"
     "y = x.copy()\nk(y, x, 1.0, threads=8)\nassert (y == 2 * x).all()"),
    ("softmax by arrays", "z = mtl.asarray(x)\ne = mtl.exp(z - z.max())\ny = np.asarray(e / e.sum())\n"
     "r = np.exp(x - x.max())\nassert np.allclose(y, r / r.sum(), rtol=1e-5)\nassert 'kernel' in str(mtl.explain(e))"),
    ("a NumPy program", "import metalloid.numpy as np\nassert float(np.linalg.norm(np.arange(5.0))) == 30 ** 0.5"),
    ("a gradient", "g = mtl.grad(lambda t: (t * t).sum())(mtl.asarray(x))\nassert np.allclose(np.asarray(g), 2 * x)"),
    ("await an event", "import asyncio\nasync def main():\n    b = mtl.Buffer(x)\n"
     "    await mtl.library(SAXPY).saxpy(b, b, 1.0, threads=8)\n    return np.asarray(b)\n"
     "assert (asyncio.run(main()) == 2 * x).all()"),
    ("types for an editor", "import pathlib\nassert (pathlib.Path(mtl.__file__).parent / 'py.typed').exists()\n"
     "assert {'exp', 'Kernel', 'library'} <= set(dir(mtl))"),
]  # fmt: skip


def play(python: Path, title: str, program: str) -> tuple[bool, float, str]:
    """Run a task: whether it passed, its seconds, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("METALLOID_")}
        environment.pop("PYTHONPATH", None)
        environment["PATH"] = f"{python.parent}:{environment['PATH']}"
        environment["METALLOID_CACHE_DIR"] = f"{folder}/cache"
        command = ["bash", "-c", program[2:]]
        if not program.startswith("$ "):
            command = [str(python), "-c", START + program]
        started = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    return done.returncode == 0, time.perf_counter() - started, done.stdout + done.stderr


def install(wheel: Path | None, folder: Path) -> Path:
    """Make a fresh environment with the wheel, and return its Python."""
    if wheel is None:
        build = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "-w",
            str(folder),
            str(ROOT),
        ]
        subprocess.run(build, check=True)
        (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "-q", str(wheel)], check=True)
    return python


def main() -> int:
    """Play all tasks; the exit code is 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--only", default="", help="tasks whose title has this text")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        python = options.python or install(options.wheel, Path(folder))
        print(f"{time.perf_counter() - started:6.1f} s  install", flush=True)
        for title, program in TASKS:
            if options.only in title:
                passed, seconds, output = play(python, title, program)
                print(f"{seconds:6.1f} s  {'' if passed else 'FAILED: '}{title}", flush=True)
                if not passed:
                    failed += 1
                    print(output[-1500:])
    print(f"{len(TASKS)} tasks, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
