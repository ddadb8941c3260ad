"""Code for assertions and log messages of a simdgroup's lanes."""

from __future__ import annotations

from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import I1
from metalloid.compiler.transforms.assertions import FAILED_IN_THREAD, LOG_IN_THREAD
from metalloid.compiler.vectorize.atomics.operations import in_turn
from metalloid.compiler.vectorize.builder import Writer
from metalloid.compiler.vectorize.failures import fail_where, thread_of
from metalloid.compiler.vectorize.lane_votes import all_lanes_pass


def write_assertion(writer: Writer, instruction: Instruction) -> None:
    """Write an ``assert``: the launch ends for the first active lane that does not pass."""
    condition, *reported, index = instruction.operands
    holds = instruction.detail == "true"

    def given(lane: str) -> list[tuple[str, str]]:
        own = [(str(value.type), writer.scalar(value)) for value in reported]
        return [*own, ("i32", thread_of(writer, writer.scalar(index), lane))]

    def ask_each() -> None:
        bad = writer.vector(condition)
        if holds:
            bad = writer.new(f"xor {writer.wide(I1)} {bad}, splat (i1 true)")
        fail_where(writer, bad, FAILED_IN_THREAD, given)

    known = "false" if condition.is_constant else _passes(writer, condition, holds)
    if known == "false":
        ask_each()
        return
    passed, asked = writer.fresh_label("passed"), writer.fresh_label("asked")
    writer.emit(f"br i1 {known}, label %{passed}, label %{asked}")
    writer.label(asked)
    with writer.aside():
        ask_each()
    writer.emit(f"br label %{passed}")
    writer.label(passed)


def _passes(writer: Writer, condition: Value, holds: bool) -> str:
    """Whether all lanes pass, asked without vectors; "false" if that is not known."""
    if not writer.is_uniform(condition):
        return all_lanes_pass(writer, condition, holds)
    known = writer.scalar(condition)
    return known if holds else writer.new(f"xor i1 {known}, true")


def write_call(writer: Writer, instruction: Instruction) -> bool:
    """Write a call that logs a message for each active lane; False if it is none."""
    if instruction.detail != LOG_IN_THREAD:
        return False
    operands = instruction.operands
    differing = [value for value in operands if not value.is_constant]

    def log(lane: list[str]) -> str:
        own = dict(zip((value.name for value in differing), lane, strict=True))
        given = [(str(value.type), own.get(value.name, value.name)) for value in operands]
        writer.call("void", LOG_IN_THREAD, given)
        return "true"

    in_turn(writer, differing, I1, log)
    return True
