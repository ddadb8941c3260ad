"""Buffers that a kernel only adds floats to: each worker thread may add to a copy of its own.

A locked instruction takes 20 cycles for each lane. Relaxed additions whose results are unused have
no order, so a large launch may give each worker a copy filled with zeros, to which it adds by
plain vector code, and add the copies to the buffer at its end (``native/memory/memory.c``).
"""

from __future__ import annotations

from metalloid.compiler.analysis.addresses import underlying_object
from metalloid.compiler.ir.cfg import Graph
from metalloid.compiler.ir.function import Function, Instruction, Value, gep_terms
from metalloid.compiler.ir.opcodes import ONE_THREAD
from metalloid.compiler.ir.types import FLOAT

_WORD = 8


def privatizable_words(function: Function, words: Value) -> dict[int, bool]:
    """The words of a launch that point to buffers of which a kernel knows only what it adds.

    Parameters
    ----------
    function : Function
        Of one thread.
    words : Value
        Its parameter that points to the words.

    Returns
    -------
    dict
        By position of the word, whether a loop adds to the buffer.
    """
    words_by_name = _pointers(function, words)
    instructions = list(function.instructions())
    computed_by = {each.result: each for each in instructions if each.result}
    used = {value.name for each in instructions for value in each.operands}
    positions: dict[int, bool] = {}
    refused: set[int] = set()
    graph = Graph(function)
    for name, block in function.blocks.items():
        for each in block.instructions():
            for number, operand in enumerate(each.operands):
                base = underlying_object(operand, computed_by)
                word = words_by_name.get(base or "")
                if word is None or each.op in ("getelementptr", "bitcast"):
                    continue
                if number == 0 and each.result not in used and is_sum(each):
                    positions[word] = (
                        positions.get(word, False) or graph.loop_of.get(name) is not None
                    )
                else:
                    refused.add(word)
    return {word: in_loop for word, in_loop in positions.items() if word not in refused}


def _pointers(function: Function, words: Value) -> dict[str, int]:
    """Positions of words, by the names of the values that are loaded from them."""
    distances = {words.name: 0}
    loaded = {}
    for each in function.instructions():
        if not each.operands or each.operands[0].name not in distances:
            continue
        distance = distances[each.operands[0].name]
        if each.op == "getelementptr":
            constant, variable = gep_terms(each)
            if not variable:
                distances[each.result] = distance + constant
        elif each.op == "load":
            loaded[each.result] = distance // _WORD
    return loaded


def is_sum(instruction: Instruction) -> bool:
    """Whether it is a relaxed addition to a float."""
    return (
        instruction.op == "atomicrmw"
        and instruction.operation == "fadd"
        and instruction.operands[1].type == FLOAT
        and instruction.ordering.endswith("monotonic")
    )


def privatize_buffers(function: Function, words: Value) -> None:
    """Mark the additions to such buffers as those of one thread of the operating system."""
    positions = privatizable_words(function, words)
    names = {name for name, word in _pointers(function, words).items() if word in positions}
    computed_by = {each.result: each for each in function.instructions() if each.result}
    for each in function.instructions():
        if each.op == "atomicrmw" and ONE_THREAD not in each.ordering and (
            underlying_object(each.operands[0], computed_by) in names
        ):  # fmt: skip
            each.ordering = f"{ONE_THREAD} {each.ordering}"
