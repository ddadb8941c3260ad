"""``metalloid passes``: each pass by itself on a small function; the texts are in ``passes/``.

Those of ``passes/cuda/`` are for NVIDIA GPUs, those of ``passes/cpu-check/`` for the sanitizer, those of ``passes/cpu-thread/`` for one thread; a name may say more after a dot. A file has the function, and in comments the command and what it prints. After a change on purpose,
run the tests once with ``METALLOID_UPDATE_GOLDEN=1`` and read the difference.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

import metalloid
from metalloid.backends.cpu.compile import pipeline as cpu_pipeline
from metalloid.backends.cpu.compile.single_passes.check import PIPELINES as CHECK_PIPELINES
from metalloid.backends.cpu.compile.single_passes.thread import PIPELINES as THREAD_PIPELINES
from metalloid.backends.cpu.compile.single_passes.vector import PIPELINES
from metalloid.backends.cuda.compile.single_passes import PIPELINES as CUDA_PIPELINES
from metalloid.cli.main import main
from metalloid.compiler.ir.parser import function_names, parse_function
from metalloid.compiler.ir.printer import function_text
from metalloid.compiler.ir.verifier import verify

FOLDER = Path(__file__).with_name("passes")
FILES = sorted(FOLDER.rglob("*.ll"))
RUN, EXPECT = "; RUN: metalloid ", "\n; expect:\n"
DEVICES = {
    "cpu": PIPELINES,
    "cpu-thread": THREAD_PIPELINES,
    "cpu-check": CHECK_PIPELINES,
    "cuda": CUDA_PIPELINES,
}


def device_of(path):
    return "cpu" if path.parent == FOLDER else path.parent.name


def name_of(path):
    """The pass of a file."""
    return path.stem.partition(".")[0]


def passes_of(device):
    return {each.name for pipeline in DEVICES[device].values() for each in pipeline}


def printed(path, capsys):
    """The output of the command in the first line of a file."""
    command = path.read_text().splitlines()[0].removeprefix(RUN)
    arguments = [str(path) if word == "%s" else word for word in shlex.split(command)]
    status = main(arguments)
    output = capsys.readouterr()
    assert status == 0, output.err
    return output.out


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_a_pass_makes_of_a_function(path, capsys):
    text = printed(path, capsys)
    source = path.read_text().partition(EXPECT)[0]
    updated = source + EXPECT + "".join(f"; {line}".rstrip() + "\n" for line in text.splitlines())
    if os.environ.get("METALLOID_UPDATE_GOLDEN"):
        path.write_text(updated)
    assert path.read_text() == updated, "run with METALLOID_UPDATE_GOLDEN=1 and read the difference"
    words = source.splitlines()[0].split()
    assert words[words.index("--pass") + 1] == name_of(path)
    assert (f"--device {device_of(path)}" in source) == (path.parent != FOLDER)


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.stem != "linearize"], ids=lambda path: path.stem
)
def test_what_a_pass_leaves_is_parsed_back(path, capsys):
    text = printed(path, capsys)
    [name] = function_names(text)
    function = parse_function(text, name, retain_hints=path.parent != FOLDER)
    verify(function)
    assert text.startswith(function_text(function) + "\n")


@pytest.mark.parametrize("device", DEVICES)
def test_every_pass_has_a_file(device):
    assert {name_of(path) for path in FILES if device_of(path) == device} == passes_of(device)


def test_all_passes_of_cpus_run_in_stages():
    """Code for CPUs runs no tuple of passes that the pipeline does not list."""
    run = {
        call[1]
        for folder in ("compiler", "backends/cpu")
        for path in (Path(metalloid.__file__).parent / folder).rglob("*.py")
        for call in re.finditer(r"\brun_passes\(\w+, ([A-Z_]+)", path.read_text())
    }
    stages = [stage.passes for stage in cpu_pipeline.PIPELINE]
    assert {id(getattr(cpu_pipeline, name)) for name in run} == {id(each) for each in stages}


@pytest.mark.parametrize(
    ("device", "line", "needs"),
    [
        ("cpu", "  rematerialize (optional)", "cfg"),
        ("cuda", "  tensor-cores", "names"),
        ("cpu-check", "  instrument-accesses", ""),
    ],
)
def test_all_passes_are_listed(device, line, needs, capsys):
    assert main(["passes", "--list", "--device", device]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = {line.split()[0] for line in lines if line[:3].strip() and line[0] == " "}
    assert listed == passes_of(device)
    assert [line[:-1] for line in lines if line[0] != " "] == list(DEVICES[device])
    assert not needs or lines[lines.index(line) + 2] == f"    needs: {needs}"


GOOD = "define void @f(ptr %threadgroup_memory, i32 %index) {\nentry:\n  ret void\n}\n"
TWO = GOOD + GOOD.replace("@f", "@g")


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [
        (GOOD, "--pass scalarise-vectors", "did you mean scalarize-vectors?"),
        (GOOD, "--pass inlining", "unknown pass 'inlining'; see --list."),
        (GOOD, "", "give a file and --pass NAME, or --list."),
        (GOOD, "--pass receive-arguments", "@f does not go through receive-arguments."),
        (TWO, "--pass linearize", "Choose one by --function: f, g."),
        (GOOD, "--function h --pass linearize", "the module has no function h"),
        ("int main() {}", "--pass linearize", "file.ll defines no function."),
        (GOOD.replace("%index", "%i"), "--pass linearize", "@f has no parameter %index"),
        (
            GOOD.replace("entry:", "; a comment\nentry:\n  %x = bad i32 7"), "--pass linearize",
            "file.ll: line 4 is not an instruction: %x = bad i32 7",
        ),
        (
            GOOD.replace("entry:", "entry:\n  %x = add i32 7"), "--pass linearize",
            "file.ll: line 3 is not an instruction: %x = add i32 7",
        ),
        (
            GOOD.replace("entry:", "entry:\n  %x = add i32 %y, 1"), "--pass linearize",
            "invalid IR in @f:\n  %entry: %x = add i32 %y, 1: %y is not defined",
        ),
        (
            GOOD.replace("entry:", "entry:\n  br label %a\na:\n  br label %a\nb:"),
            "--pass divergence", "file.ll: a loop that never ends",
        ),
        (GOOD, "--device cuda --pass linearize", "unknown pass 'linearize'; see --list."),
        (GOOD, "--device cuda --pass name-values --constant 1", "--constant 1 is out of range: --words is 1"),
        (
            "define void @f() {\n  ret void\n}\n", "--device cuda --pass name-values",
            "@f has no parameters: the first must point to launch_data",
        ),
    ],
)  # fmt: skip
def test_errors(text, options, error, tmp_path, capsys):
    path = tmp_path / "file.ll"
    path.write_text(text)
    assert main(["passes", str(path), *options.split()]) == 1
    assert error in capsys.readouterr().err


def test_multiple_passes_run_in_order(tmp_path, capsys):
    path = tmp_path / "file.ll"
    path.write_text(GOOD)
    names = ("simplify-loops", "split-at-barriers", "rematerialize")
    options = [word for name in names for word in ("--pass", name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METALLOID_PRINT_AFTER", "all")
        assert main(["passes", str(path), *options]) == 0
    heads = [line for line in capsys.readouterr().err.splitlines() if line.startswith("; ***")]
    # The first needs what the second gives, which then need not run again.
    order = ("split-at-barriers", "simplify-loops", "rematerialize")
    assert heads == [f"; *** IR after {name} ***" for name in order]


NESTED = """
define void @kernel(ptr %words, ptr %threadgroup_memory, i32 %index) {
entry:
  call void @outer(ptr %words, i32 %index)
  ret void
}
define internal void @outer(ptr %p, i32 %n) {
entry:
  call void @inner(ptr %p, i32 %n)
  ret void
}
define internal void @inner(ptr %p, i32 %n) {
entry:
  store i32 %n, ptr %p, align 4
  ret void
}
"""


@pytest.mark.parametrize("name", ["outer", "inner"])
def test_functions_that_functions_call(name, tmp_path, capsys):
    path = tmp_path / "file.ll"
    path.write_text(NESTED)
    assert main(["passes", str(path), "--function", name, "--pass", "linearize"]) == 0
    text = capsys.readouterr().out
    assert f"@mtl_lanes.{name}(" in text
    assert ("call void @mtl_lanes.inner(" in text) == (name == "outer")


@pytest.mark.parametrize("name", ["simplify-loops", "split-at-barriers", "scalarize-vectors"])
def test_what_holds_already_is_left_alone(name, tmp_path, capsys):
    path = tmp_path / "file.ll"
    path.write_text(printed(FOLDER / f"{name}.ll", capsys))
    assert main(["passes", str(path), "--pass", name]) == 0
    assert capsys.readouterr().out == path.read_text()
