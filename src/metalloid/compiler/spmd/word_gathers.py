"""Gathers of numbers of 8 and 16 bits, as gathers of words.

No processor gathers less than 32 bits. Loads that together read all bytes of a word, as those of
the components of a texel do, are one gather of that word. A single one gathers the word, aligned as
words are, that its number lies in: memory that may be read ends nowhere within such a word.
"""

from __future__ import annotations

from dataclasses import dataclass

from metalloid.compiler.llvm.ir import Instruction
from metalloid.compiler.llvm.types import I1, Integer, Type
from metalloid.compiler.spmd.addresses import Root, root_of
from metalloid.compiler.spmd.divergence import Divergence
from metalloid.compiler.spmd.processor import is_lanewise
from metalloid.compiler.spmd.writer import Writer

_WORD_BYTES = 4
_WORD = Integer(8 * _WORD_BYTES)


@dataclass(eq=False)
class Word:
    """A word that several loads are parts of.

    Attributes
    ----------
    first : Instruction
        The load that comes first.
    place : int
        Where in the word it begins, in bytes.
    """

    first: Instruction
    place: int


def find_words(divergence: Divergence, grouped: set[int]) -> dict[int, tuple[Word, int]]:
    """The word of a load and its place there, by the identity of the load.

    Parameters
    ----------
    divergence : Divergence
    grouped : set of int
        Accesses that are already done as parts of others.
    """
    found: dict[int, tuple[Word, int]] = {}
    computed_by = {i.result: i for i in divergence.function.instructions() if i.result}
    for block in divergence.function.blocks.values():
        open_: dict[Root, list[tuple[int, Instruction]]] = {}
        for instruction in block.body:
            op = instruction.op
            if op in ("store", "atomicrmw", "cmpxchg", "fence", "copy") or (
                op == "call" and not is_lanewise(instruction.detail)
            ):
                found.update(_words_of(open_))
                open_ = {}
            elif _is_gather(instruction, block.name, divergence) and id(instruction) not in grouped:
                root, offset = root_of(instruction.operands[0], computed_by)
                open_.setdefault(root, []).append((offset, instruction))
        found.update(_words_of(open_))
    return found


def _is_gather(instruction: Instruction, block: str, divergence: Divergence) -> bool:
    if instruction.op != "load" or instruction.detail or "volatile" in instruction.flags:
        return False
    shape, size = divergence.shape(instruction.operands[0], block), instruction.type.size
    is_small = size < _WORD_BYTES and instruction.type != I1
    return is_small and not shape.is_uniform and shape.stride != size


def _words_of(
    loads_at: dict[Root, list[tuple[int, Instruction]]],
) -> dict[int, tuple[Word, int]]:
    found: dict[int, tuple[Word, int]] = {}
    for loads in loads_at.values():
        todo = sorted(loads, key=lambda one: one[0])
        while todo:
            start = todo[0][0]
            inside = [
                (offset - start, load)
                for offset, load in todo
                if offset + load.type.size <= start + _WORD_BYTES
            ]
            bytes_ = {at + n for at, load in inside for n in range(load.type.size)}
            if len(bytes_) == _WORD_BYTES:
                first = next(load for _, load in loads if any(load is one for _, one in inside))
                word = Word(first, next(at for at, load in inside if load is first))
                found.update((id(load), (word, at)) for at, load in inside)
                todo = todo[len(inside) :]
            else:
                todo = [one for one in todo if one[0] != start]
    return found


def load(writer: Writer, instruction: Instruction) -> str | None:
    """What a load of less than a word gives, from a gather of a word; None if there is none."""
    type = instruction.type
    found = writer.words.get(id(instruction))
    if found is not None:
        word, place = found
        everything = writer.remembered(id(word)) or _gathered(writer, word)
        writer.remember(id(word), everything)
        wide = writer.wide(_WORD)
        if place:
            everything = writer.new(f"lshr {wide} {everything}, splat (i32 {8 * place})")
        return _low_part(writer, everything, type)
    if type.size >= _WORD_BYTES or (instruction.align or type.size) < type.size:
        return None
    return _from_aligned_word(writer, instruction)


def _gathered(writer: Writer, word: Word) -> str:
    pointers = f"<{writer.width} x ptr>"
    addresses = writer.vector(word.first.operands[0])
    if word.place:
        addresses = writer.new(f"getelementptr i8, {pointers} {addresses}, i64 {-word.place}")
    return gather_words(writer, addresses, word.first.type.size)


def gather_words(writer: Writer, addresses: str, align: int) -> str:
    """The words at some addresses."""
    wide, width = writer.wide(_WORD), writer.width
    pointers = f"<{width} x ptr>"
    return writer.call(
        wide,
        f"@llvm.masked.gather.v{width}i32.v{width}p0",
        [
            (f"{pointers} align {align}", addresses),
            (writer.wide(I1), writer.active()),
            (wide, "poison"),
        ],
    )


def _from_aligned_word(writer: Writer, instruction: Instruction) -> str:
    width, wide = writer.width, writer.wide(_WORD)
    pointers, longs = f"<{width} x ptr>", f"<{width} x i64>"
    addresses = writer.vector(instruction.operands[0])
    aligned = writer.call(
        pointers, f"@llvm.ptrmask.v{width}p0.v{width}i64",
        [(pointers, addresses), (longs, f"splat (i64 {-_WORD_BYTES})")],
    )  # fmt: skip
    everything = gather_words(writer, aligned, _WORD_BYTES)
    number = writer.new(f"ptrtoint {pointers} {addresses} to {wide}")
    place = writer.new(f"and {wide} {number}, splat (i32 {_WORD_BYTES - 1})")
    bits = writer.new(f"shl {wide} {place}, splat (i32 3)")
    return _low_part(writer, writer.new(f"lshr {wide} {everything}, {bits}"), instruction.type)


def _low_part(writer: Writer, words: str, type: Type) -> str:
    part = Integer(8 * type.size)
    low = writer.new(f"trunc {writer.wide(_WORD)} {words} to {writer.wide(part)}")
    if isinstance(type, Integer):
        return low
    return writer.new(f"bitcast {writer.wide(part)} {low} to {writer.wide(type)}")
