"""Pipelines: what passes need and give, and the settings that help to find a wrong one."""

import dataclasses
import os
import subprocess
import sys

import pytest

import metalloid as mtl
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.instruction_parser import Line
from metalloid.compiler.ir.matrix_type import MATRIX
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.ir.pass_manager import Pass, PipelineError, run_passes
from metalloid.compiler.ir.printer import instruction_text
from metalloid.compiler.ir.types import FLOAT, I1, I32, POINTER
from metalloid.compiler.ir.verifier import InvalidIR
from metalloid.compiler.vectorize.context import Context
from metalloid.compiler.vectorize.pipeline import LOWERING, LOWERING_OF_CALLEES, VECTORIZATION

TEXT = "define void @f(i32 %n) {\nentry:\n  %a = add i32 %n, 1\n  ret void\n}\n"


def function():
    return parse_function(TEXT, "f")


def recording(name, calls, **options):
    return Pass(name, lambda function, context: calls.append(name), "a test", **options)


def test_a_pass_that_needs_what_nothing_gives_is_refused():
    calls = []
    late = recording("late", calls, needs=("cfg",))
    with pytest.raises(PipelineError, match="late needs cfg"):
        run_passes(function(), (late,), Context())
    run_passes(function(), (recording("cfg", calls, gives=("cfg",)), late), Context())
    assert calls == ["cfg", "late"]


def test_an_analysis_is_rerun_only_after_it_was_invalidated():
    for changes, expected in ((False, ["analysis"]), (None, ["analysis", "analysis"])):
        calls = []
        analysis = recording("analysis", calls, gives=("facts",))
        change = Pass("change", lambda f, c, r=changes: r, "a test", invalidates=("facts",))
        run_passes(function(), (analysis, change, analysis), Context())
        assert calls == expected


def test_optional_passes_are_disabled_by_name_and_by_number(capsys):
    calls = []
    passes = (
        recording("one", calls, optional=True),
        recording("two", calls),
        recording("three", calls, optional=True),
    )
    with mtl.config.scope(disable_pass="one,two"):
        run_passes(function(), passes, Context())
    assert calls == ["two", "three"]
    calls.clear()
    with mtl.config.scope(pass_limit=0):
        run_passes(function(), passes, Context())
    assert calls == ["two"]
    assert ") three on @f" in capsys.readouterr().err


def test_the_verifier_names_the_pass(capsys):
    def spoil(function, context):
        function.entry.body.append(function.entry.body[0])

    with (
        mtl.config.scope(verify_passes=True),
        pytest.raises(InvalidIR, match=r"after spoil.*\n.*several definitions"),
    ):
        run_passes(function(), (Pass("spoil", spoil, "a test"),), Context())
    with mtl.config.scope(print_after="nothing"):
        run_passes(function(), (Pass("nothing", lambda f, c: None, "a test"),), Context())
    assert capsys.readouterr().err.startswith("; *** IR after nothing ***\ndefine void @f(i32 %n)")


def stderr_of_passes(folder, **variables):
    """Run ``metalloid passes`` with some settings, and return its stderr."""
    path = folder / "file.ll"
    path.write_text(
        "define void @f(ptr %threadgroup_memory, i32 %index) {\nentry:\n  ret void\n}\n"
    )
    names = ("mark-invariant-loads", "scalarize-vectors", "rematerialize", "scalarize-vectors")
    words = [sys.executable, "-m", "metalloid", "passes", str(path)]
    words += [word for name in names for word in ("--pass", name)]
    environment = os.environ | variables
    outcome = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return outcome.stderr.splitlines()


def test_optional_passes_are_listed_with_their_numbers(tmp_path):
    for limit, kinds in (("0", "--"), ("1", "+-"), ("2", "++"), ("99", "++")):
        words = {"+": "running", "-": "not running"}
        assert stderr_of_passes(tmp_path, METALLOID_PASS_LIMIT=limit) == [
            f"PASS {words[kind]} ({number}) {name} on @f"
            for kind, number, name in zip(
                kinds, (1, 2), ("mark-invariant-loads", "rematerialize"), strict=True
            )
        ]
    assert stderr_of_passes(tmp_path, METALLOID_PASS_LIMIT="-1") == []


def test_time_and_instructions_of_each_pass(tmp_path):
    head, *rows = stderr_of_passes(tmp_path, METALLOID_TIME_PASSES="1")
    assert head.split() == ["pass", "runs", "ms", "share", "instructions"]
    table = {name: row for name, *row in map(str.split, rows)}
    assert len(table) == len(rows)
    # One instruction; simplify-loops adds the exit block. Time falls from row to row.
    assert table["simplify-loops"][0] == "1"
    assert table["simplify-loops"][3:] == ["1", "->", "2"]
    # It gives what holds already the second time, so it does not run.
    assert table["scalarize-vectors"][0] == "1"
    times = [float(row[1]) for row in table.values()]
    assert times == sorted(times, reverse=True)
    assert abs(sum(int(row[2][:-1]) for row in table.values()) - 100) <= len(table)


@pytest.mark.parametrize("pipeline", [LOWERING, LOWERING_OF_CALLEES])
def test_lowering_gives_what_vectorisation_begins_with(pipeline):
    given = {name for each in pipeline for name in each.gives}
    assert {"scalars", "legal types", "barriers end blocks"} <= given
    names = [each.name for each in VECTORIZATION if not each.gives]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "instruction",
    [
        Instruction("assert", operands=[Value(I1, "%c"), Value(POINTER, "@text")]),
        Instruction("to_matrix", "%m", MATRIX, [Value(FLOAT, "%a"), Value(FLOAT, "%b")]),
        Instruction("of_matrix", "%x", FLOAT, [Value(MATRIX, "%m")], indices=(1,)),
        Instruction(
            "load_matrix", "%m", MATRIX, [Value(POINTER, "%p")], indices=(8, 1), source=FLOAT
        ),
        Instruction("alloca", "%p", POINTER, source=FLOAT, align=4, lane_step=16),
        Instruction(
            "alloca",
            "%p",
            POINTER,
            [Value(POINTER, "%q")],
            ("parameter",),
            source=FLOAT,
            lane_step=4,
        ),
        Instruction(
            "atomicrmw",
            "%x",
            I32,
            [Value(POINTER, "%p"), Value(I32, "1")],
            operation="add",
            ordering="monotonic",
            align=4,
            accumulator=3,
        ),
        Instruction("phi", "%m", MATRIX, [Value(MATRIX, "%a")], labels=["%b"]),
        Instruction("load", "%x", FLOAT, [Value(POINTER, "%p")], ("call_invariant",), align=4),
    ],
    ids=lambda instruction: " ".join((*instruction.flags, instruction.op)),
)
def test_our_own_instructions_are_parsed_back(instruction):
    parsed = Line(instruction_text(instruction), lambda name: FLOAT).instruction()
    assert dataclasses.astuple(parsed) == dataclasses.astuple(instruction)
