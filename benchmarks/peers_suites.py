"""The test suites and examples of the systems people come from, run on metalloid.

    git clone https://github.com/baldand/py-metal-compute        # 4826e73
    git clone https://github.com/alvinwan/guide-to-hacking       # da738c7
    git clone https://github.com/pmehrotra3/MetalPy              # c1c999c
    git clone https://github.com/mivertowski/PyDotCompute        # 178ad06
    git clone https://github.com/ml-explore/mlx                  # 846d176
    pip install pytest pytest-asyncio "mlx[cpu]"
    python benchmarks/peers_suites.py py-metal-compute guide-to-hacking MetalPy PyDotCompute mlx

Each program runs as it is in a process of its own, in a copy of its folder, where the module it
imports is one of `metalloid.compat`. Sizes meant for a GPU are made smaller by an edit of the copy,
and tests that only a Mac would run are let run; each such edit is listed here. Prints what passed
and what failed, with the commits.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 3600  # that a program may take; kernels are compiled when they first run

#: Runs a program where modules by some names are others.
_RUNNER = """
import importlib, json, runpy, sys
redirected, program, *arguments = sys.argv[1:]
for name, home in json.loads(redirected).items():
    sys.modules[name] = importlib.import_module(home)
sys.argv = [program, *arguments]
sys.path.insert(0, ".")
runpy.run_path(program, run_name="__main__")
"""


#: The same for tests that pytest runs; modules below a redirected package are redirected, too.
_CONFTEST = """
import importlib, json, pkgutil, sys, types
for name, home in json.loads({redirected!r}).items():
    module = sys.modules[name] = importlib.import_module(home)
    for below in pkgutil.walk_packages(getattr(module, "__path__", ()), home + "."):
        own = name + below.name[len(home):]
        if home.count(".") > 1:  # a package of metalloid.compat
            sys.modules[own] = importlib.import_module(below.name)
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules.setdefault(parent, types.ModuleType(parent)), last, module)
"""
_OUTCOMES = re.compile(r"(\d+) (passed|failed|error)")


@dataclass(frozen=True)
class Program:
    """One program of a suite.

    Attributes
    ----------
    path : str
        In the checkout; a notebook's code cells are run one after the other.
    arguments : tuple of str
    stdin : bytes
    edits : tuple of (str, str)
        What is written differently in the copy, and how.
    redirects : tuple of (str, str)
        Names of modules, and which replace them; the suite's if empty.
    without : tuple of str
        Cells of a notebook that hold one of these are left out.
    """

    path: str
    arguments: tuple[str, ...] = ()
    stdin: bytes = b""
    edits: tuple[tuple[str, str], ...] = ()
    redirects: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileOfTests(Program):
    """A file of tests, each of which counts.

    Attributes
    ----------
    arguments : tuple of str
        Of pytest.
    setup : str
        Python that runs before the tests are imported.
    """

    setup: str = ""


@dataclass(frozen=True)
class Suite:
    """Programs of one repository.

    Attributes
    ----------
    name : str
    marker : str
        A file by which a checkout is known.
    redirects : tuple of (str, str)
        Names of modules, and which replace them.
    programs : tuple of Program
    left_out : tuple of (str, str)
        Programs that cannot be run, and why.
    """

    name: str
    marker: str
    redirects: tuple[tuple[str, str], ...]
    programs: tuple[Program, ...]
    left_out: tuple[tuple[str, str], ...] = ()


_METAL = ("Metal", "metalloid.compat.Metal")
_SMALLER_JULIA = (("w = 4096", "w = 1024"), ("h = 4096", "h = 1024"))
#: Files of tests of `mlx.core`, `mlx.nn` and `mlx.optimizers`.
_MLX_FILES = (
    "array", "autograd", "bf16", "blas", "compile", "constants", "conv", "conv_transpose", "device",
    "double", "einsum", "eval", "export_import", "fast", "fast_sdpa", "fft", "graph", "init",
    "linalg", "load", "losses", "memory", "nn", "ops", "optimizers", "quantized", "random",
    "reduce", "threads", "tree", "upsample", "vmap", "zero_copy",
)  # fmt: skip
SUITES = (
    Suite(
        "metalcompute",
        "src/metalcompute.swift",
        (("metalcompute", "metalloid.compat.metalcompute"),),
        (
            Program("tests/action.py"),
            Program("tests/basic.py"),
            Program("examples/minimal.py", edits=(("c = 250000000", "c = 25000000"),)),
            Program("examples/metalcompute-pipe", ("out[id] = in[id] + 1",), b"HAL" * 1000),
            Program(
                "examples/metalcompute-measure",
                edits=(
                    ("count = 8*1024*64", "count = 256"),
                    ("dim = 1024*16", "dim = 1024*4"),
                    ("reps = 200", "reps = 20"),
                ),
            ),
            Program("examples/metalcompute-mandelbrot", ("-width", "1024", "-height", "1024")),
            Program("examples/metalcompute-raymarch", ("-width", "1024", "-height", "1024")),
            Program("examples/metalize/julia.py", edits=_SMALLER_JULIA),
            Program(
                "examples/metalize/julia.py", edits=_SMALLER_JULIA,
                redirects=(("metalize", "metalloid.compat.metalcompute.metalize"),),
            ),
            Program("examples/metalcompute_numpy.ipynb"),
            Program(
                "examples/metalcompute_mandelbrot.ipynb",
                edits=(("import IPython", ""),),
                without=("h264_videotoolbox", "IPython.display"),
            ),
        ),
        (("examples/livecode/livemetal.py", "a web server that waits for a browser"),),
    ),
    Suite(
        "guide-to-hacking",
        "metal/v0-hello-world/utils.py",
        (_METAL,),
        (
            Program("metal/v0-hello-world/demo.py"),
            Program(
                "metal/v0-hello-world/demo.py", redirects=(("utils", "metalloid.compat.guide"),)
            ),
            Program("metal/v1-advanced/run.py"),
            Program("metal/v2-initialize/run.py"),
            Program("metal/v3-float/run.py"),
            Program("metal/bonus-numpy/run.py"),
        ),
    ),
    Suite(
        "MetalPy",
        "MetalPy.py",
        (("MetalPy", "metalloid.compat.metalpy"),),
        (FileOfTests("test.py"),),
    ),
    Suite(
        "PyDotCompute",
        "pydotcompute/backends/metal.py",
        (("pydotcompute", "metalloid.compat.pydotcompute"), ("mlx.core", "metalloid")),
        (
            FileOfTests(
                "tests/unit/test_metal_backend.py",
                (
                    "--deselect", "TestMetalUnifiedBuffer::test_metal_sync_from_host",
                    "--deselect", "TestMetalKernelCompilation::test_msl_compilation_placeholder",
                ),
                edits=(
                    ('if sys.platform != "darwin":', "if False:"),
                    ("return mx.metal.is_available()", "return True"),
                ),
            ),
            FileOfTests("tests/unit/test_unified_buffer.py", ("-o", "asyncio_mode=auto")),
            FileOfTests("tests/unit/test_backends.py"),
            FileOfTests("tests/unit/test_accelerator.py"),
        ),
        (
            ("test_metal_sync_from_host", "fails anywhere: it hides `np` from itself"),
            ("test_msl_compilation_placeholder", "expects MSL not to be compiled"),
        ),
    ),
    Suite(
        "MLX: custom kernels",
        "python/tests/test_fast.py",
        (),
        (
            FileOfTests(
                "python/tests/test_fast.py",
                ("-k", "custom_kernel or custom_metal_kernel"),
                edits=(
                    ("mx.is_available(mx.gpu)", "True"), ("mx.metal.is_available()", "True"),
                ),
                setup="import metalloid.compat.mlx as compat; compat.patch()",
            ),
            FileOfTests(
                "python/tests/test_eval.py",
                ("-k", "test_eval_exception_does_not_corrupt_state"),
                edits=(("mx.metal.is_available()", "True"),),
                setup="import metalloid.compat.mlx as compat; compat.patch()",
            ),
        ),
        (("python/tests/test_export_import.py", "kernels cannot be traced"),),
    ),
    Suite(
        "MLX: its own suite, on metalloid.compat.mlx.core",
        "python/tests/test_fast.py",
        (),
        tuple(
            FileOfTests(
                f"python/tests/test_{name}.py",
                setup="import metalloid.compat.mlx as compat; compat.install()",
            )
            for name in _MLX_FILES
        ),
        (("python/tests/*_test_distributed.py", "several processes"),),
    ),
)  # fmt: skip


def text_of(program: Program, path: Path) -> str:
    """The Python text of a program, edited."""
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        cells = [
            "".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"
        ]
        text = "\n".join(c for c in cells if not any(word in c for word in program.without))
    for before, after in program.edits:
        if before not in text:
            raise SystemExit(f"{program.path} has changed: there is no {before!r}")
        text = text.replace(before, after)
    return text


def run(suite: Suite, program: Program, checkout: Path) -> tuple[int, int, float, str]:
    """The tests of a program that passed and failed, the seconds it took, and its last line."""
    source = checkout / program.path
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "copy"
        shutil.copytree(source.parent, folder)
        redirects = json.dumps(dict(program.redirects or suite.redirects))
        if isinstance(program, FileOfTests):
            target = folder / source.name
            conftest = _CONFTEST.format(redirected=redirects) + program.setup
            (folder / "conftest.py").write_text(conftest, "utf-8")
            (folder / "__init__.py").unlink(missing_ok=True)
            command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "--rootdir", str(folder)]
            command += [*_in_file(target.name, program.arguments), target.name]
        else:
            target = folder / f"{source.stem}.peer.py"
            command = [sys.executable, "-c", _RUNNER, redirects, target.name, *program.arguments]
        target.write_text(text_of(program, source), "utf-8")
        start = time.perf_counter()
        try:
            done = subprocess.run(
                command, cwd=folder, input=program.stdin, capture_output=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return 0, 1, float(SECONDS), f"took more than {SECONDS} s"
        seconds = time.perf_counter() - start
    said = (done.stdout or done.stderr if isinstance(program, FileOfTests) or not done.returncode
            else done.stderr).decode("utf-8", "replace")  # fmt: skip
    last = (said.strip().splitlines() or [""])[-1]
    if not isinstance(program, FileOfTests):
        return int(done.returncode == 0), int(done.returncode != 0), seconds, last
    counts = {word: int(number) for number, word in _OUTCOMES.findall(last)}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    return counts.get("passed", 0), failed or int(done.returncode != 0), seconds, last


def _in_file(name: str, arguments: Sequence[str]) -> list[str]:
    """Arguments of pytest, with tests to leave out named after their file."""
    return [f"{name}::{a}" if b == "--deselect" else a
            for a, b in zip(arguments, ("", *arguments), strict=False)]  # fmt: skip


def commit_of(checkout: Path) -> str:
    """The commit of a checkout, or nothing."""
    git = ["git", "-C", str(checkout), "rev-parse", "--short=7", "HEAD"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="checkouts")
    paths = parser.parse_args(arguments).paths
    rows, failures = [], 0
    for checkout in paths:
        suites = [suite for suite in SUITES if (checkout / suite.marker).exists()]
        if not suites:
            raise SystemExit(f"{checkout} is no checkout of {', '.join(s.name for s in SUITES)}")
        for suite in suites:
            passed = failed = 0
            for program in suite.programs:
                good, bad, seconds, said = run(suite, program, checkout)
                passed, failed = passed + good, failed + bad
                word = "FAILED" if bad else "ok"
                print(f"{word:<7}{seconds:6.1f} s  {program.path}: {said[:80]}", flush=True)
            for path, reason in suite.left_out:
                print(f"left out  {path}: {reason}")
            failures += failed
            rows.append((suite.name, commit_of(checkout), passed, failed, len(suite.left_out)))
    print("\n| suite | commit | passed | failed | left out |\n|---|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
