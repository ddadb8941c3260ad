"""By how much an address is further in the next round of a loop, from which it is known what to ask for."""

import pytest
from spmd_texts import analysed, function

from metalloid.compiler.ir.function import Value
from metalloid.compiler.ir.types import POINTER
from metalloid.compiler.vectorize.builder import Builder
from metalloid.compiler.vectorize.memory.prefetch import (
    InductionSteps,
    look_ahead,
    looks_ahead,
)

LOOP = """
    entry: %q = load ptr, ptr %p; br label %loop
    loop: %i = phi i32 [ %x, %entry ], [ %j, %loop ]; BODY; %j = add i32 %i, 32; br i1 %c, label %loop, label %out
    out: ret void
"""


def writer_of(body):
    builder = Builder(analysed(LOOP.replace("BODY", body)), 1)
    builder.block = "%loop"
    return builder


@pytest.mark.parametrize(
    ("body", "step"),
    [
        ("%a = getelementptr float, ptr %q, i32 %i", 128),
        ("%w = zext i32 %i to i64; %a = getelementptr i8, ptr %q, i64 %w", 32),
        ("%m = mul i32 %u, 3; %s = add i32 %m, %i; %a = getelementptr float, ptr %q, i32 %s", 128),
        ("%m = shl i32 %i, 2; %s = sub i32 %u, %m; %a = getelementptr float, ptr %q, i32 %s", -512),
        ("%m = or disjoint i32 %i, 1; %a = getelementptr float, ptr %q, i32 %m", 128),
        ("%m = or i32 %i, %u; %a = getelementptr float, ptr %q, i32 %m", None),
        ("%m = mul i32 %i, %u; %a = getelementptr float, ptr %q, i32 %m", None),
        ("%l = load i32, ptr %q; %a = getelementptr float, ptr %q, i32 %l", None),
        ("%a = getelementptr float, ptr %q, i32 %u", 0),
    ],
)
def test_steps(body, step):
    builder = writer_of(body)
    [loop] = builder.divergence.graph.loops
    assert InductionSteps(builder, loop).step(Value(POINTER, "%a")) == step


def test_what_uses_itself_twice_is_given_up():
    chain = "; ".join(f"%h{k + 1} = mul i32 %h{k}, %h{k}" for k in range(2000))
    builder = writer_of(f"%h0 = add i32 %i, 0; {chain}; %a = getelementptr i8, ptr %q, i32 %h2000")
    [loop] = builder.divergence.graph.loops
    assert InductionSteps(builder, loop).step(Value(POINTER, "%a")) is None


def test_a_number_that_is_doubled_has_no_step():
    builder = Builder(
        analysed(
            LOOP.replace("BODY", "%a = getelementptr i8, ptr %q, i32 %i").replace(
                "add i32 %i, 32", "add i32 %i, %i"
            )
        ),
        1,
    )
    [loop] = builder.divergence.graph.loops
    assert InductionSteps(builder, loop).step(Value(POINTER, "%a")) is None


@pytest.mark.parametrize(
    ("body", "ahead"),
    [
        ("%a = getelementptr float, ptr %q, i32 %i", 2048),
        ("%m = mul i32 %i, %u; %a = getelementptr float, ptr %q, i32 %m", None),
        ("%m = sub i32 0, %i; %a = getelementptr float, ptr %q, i32 %m", None),  # backwards
        ("%a = getelementptr float, ptr %p, i32 %i", None),  # a variable of the threadgroup
    ],
)
def test_what_is_asked_for(body, ahead):
    builder = writer_of(body)
    builder._scalars["%a"] = "%address"
    look_ahead(builder, Value(POINTER, "%a"), 128)
    asked = [line for line in builder.emitted_block.lines if "getelementptr" in line]
    distances = [int(line.rsplit(" ", 1)[1]) for line in asked]
    assert distances == ([] if ahead is None else [ahead, ahead + 64])
    assert len([line for line in builder.emitted_block.lines if "@llvm.prefetch" in line]) == len(
        asked
    )


def test_loops_need_not_ask():
    builder = writer_of("%a = getelementptr float, ptr %q, i32 %i")
    builder._scalars["%a"] = "%address"
    builder.prefetches_in_loops = False
    look_ahead(builder, Value(POINTER, "%a"), 128)
    assert not any("@llvm.prefetch" in line for line in builder.emitted_block.lines)


@pytest.mark.parametrize(("operations", "is_much"), [(20, False), (60, True)])
def test_instructions_for_an_index_are_not_much(operations, is_much):
    chain = "; ".join(f"%h{k + 1} = fneg float %h{k}" for k in range(operations))
    text = (
        "entry: %q = load ptr, ptr %p; %m = mul i32 %x, 3; %i = add i32 %m, %u; "
        "%a = getelementptr float, ptr %q, i32 %i; %h0 = load float, ptr %a; "
        f"{chain}; store float %h{operations}, ptr %a; ret void"
    )
    assert looks_ahead(function(text)) == is_much
    assert looks_ahead(analysed(text).function) == is_much


@pytest.mark.parametrize(("stored", "is_far_less"), [("i8", True), ("i64", False)])
def test_threads_that_store_little_of_what_they_load_look_ahead(stored, is_far_less):
    text = (
        "entry: %q = load ptr, ptr %p; %a = getelementptr i64, ptr %q, i32 %x; "
        "%n = load i64, ptr %a; %b = trunc i64 %n to i8; "
        f"store {stored} {'%b' if stored == 'i8' else '%n'}, ptr %a; ret void"
    )
    assert looks_ahead(function(text)) == is_far_less
