"""Code for assertions and log messages of a simdgroup's lanes."""

from __future__ import annotations

from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.types import I1
from metalloid.compiler.transforms.assertions import (
    FAILED_IN_THREAD,
    LOG_IN_THREAD,
    OUTSIDE_IN_THREAD,
)
from metalloid.compiler.vectorize.atomics.operations import in_turn
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.control_flow.failures import fail_where, others_of, thread_of
from metalloid.compiler.vectorize.control_flow.lane_votes import all_lanes_pass


def write_assertion(builder: Builder, instruction: Instruction) -> None:
    """Write an ``assert``: the launch ends for the first active lane that does not pass."""
    is_access = instruction.op == "assert_inside"
    operands = instruction.operands[:-1] if is_access else instruction.operands
    condition, *reported, index = operands
    holds = instruction.op != "assert_not"
    failure = OUTSIDE_IN_THREAD if is_access else FAILED_IN_THREAD

    def ask_each() -> None:
        # Computed here: what the failing block computes is not known after it.
        is_vector = builder.shape(index).is_varying  # in functions that kernels call
        first = "" if is_vector else builder.scalar(index)
        uniform = {v: builder.scalar(v) for v in reported if builder.is_uniform(v)}
        varying = {v: builder.vector(v) for v in reported if v not in uniform}
        if is_vector:
            varying[index] = builder.vector(index)

        def given(lane: str, number: str) -> list[tuple[str, str]]:
            own = [
                (str(v.type), uniform[v] if v in uniform else of_lane(v, lane)) for v in reported
            ]
            thread = of_lane(index, lane) if is_vector else thread_of(builder, first, lane)
            own.append(("i32", thread))
            if is_access:
                own.append(("i32", others_of(builder, number)))
            return own

        def of_lane(value: Value, lane: str) -> str:
            vector = f"{builder.wide(value.type)} {varying[value]}"
            return builder.new(f"extractelement {vector}, i{builder.width} {lane}")

        bad = builder.vector(condition)
        if holds:
            bad = builder.new(f"xor {builder.wide(I1)} {bad}, splat (i1 true)")
        fail_where(builder, bad, failure, given)

    known = "false" if condition.is_constant else _passes(builder, condition, holds)
    if known == "false":
        ask_each()
        return
    passed, asked = builder.fresh_label("passed"), builder.fresh_label("asked")
    builder.cond_br(known, passed, asked)
    builder.label(asked)
    with builder.aside():
        ask_each()
    builder.br(passed)
    builder.label(passed)


def _passes(builder: Builder, condition: Value, holds: bool) -> str:
    """Whether all lanes pass, asked without vectors; "false" if that is not known."""
    if not builder.is_uniform(condition):
        return all_lanes_pass(builder, condition, holds)
    known = builder.scalar(condition)
    return known if holds else builder.new(f"xor i1 {known}, true")


def write_call(builder: Builder, instruction: Instruction) -> bool:
    """Write a call that logs a message for each active lane; False if it is none."""
    if instruction.callee != LOG_IN_THREAD:
        return False
    operands = instruction.operands
    differing = [value for value in operands if not value.is_constant]

    def log(lane: list[str]) -> str:
        own = dict(zip((value.name for value in differing), lane, strict=True))
        given = [(str(value.type), own.get(value.name, value.name)) for value in operands]
        builder.call("void", LOG_IN_THREAD, given)
        return "true"

    in_turn(builder, differing, I1, log)
    return True
