"""The text of the vector code while it is written: values, slots, masks.

Values that outlive their block go through slots, which are plain stack variables: clang's mem2reg
makes registers of them and inserts phis. So no pass of ours has to repair SSA form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from metalloid.compiler.analysis.divergence import Divergence
from metalloid.compiler.analysis.shapes import Shape
from metalloid.compiler.ir.function import Instruction, Value
from metalloid.compiler.ir.opcodes import FAST_MATH
from metalloid.compiler.ir.types import I1, I64, Float, Integer, Pointer, Type
from metalloid.compiler.transforms.callees import NO_CALLEES, Callees
from metalloid.compiler.vectorize.emitted_code import EmittedBlock, Return, SlotAccess
from metalloid.compiler.vectorize.slots import Slot, SlotKind

if TYPE_CHECKING:
    from metalloid.compiler.vectorize.atomics.accumulators import Accumulators

_SLOT_ALIGNMENT = 64
#: What a scalar takes at most, and lies at a multiple of.
SCALAR_BYTES = 8
#: The attribute group of emitted functions, until the module gives it a number.
VECTOR_ATTRIBUTES = "#vector_function"


class Builder:
    """Writes one function for a simdgroup.

    A value has a scalar form (what is uniform, or the base of what is indexed) or a vector form, or
    both; the second one of an indexed value is emitted on demand.

    Attributes
    ----------
    width : int
        Lanes.
    mask_bits : int
        Width of the integers that masks are made of: 1 where the processor has mask registers.
    block : str
        Block that is being written.
    mask : str or None
        Active lanes; None if all are.
    first_lanes : int
        How many are, if it is known to be the first ones; 0 if nothing is known.
    in_halves : bool
        Whether rows are loaded and stored in two halves, as trees of operations look for them.
    """

    #: Whether inactive lanes get garbage in every vector that is computed. Nothing may come of it:
    #: tests set this to see that nothing does.
    poisons_inactive_lanes = False

    def __init__(
        self,
        divergence: Divergence,
        mask_bits: int,
        accumulators: Accumulators | None = None,
        callees: Callees = NO_CALLEES,
    ) -> None:
        self.divergence, self.width = divergence, divergence.width
        self.mask_type = Integer(mask_bits)
        self.accumulators = accumulators
        self.callees = callees
        self.block = ""
        self.mask: str | None = None
        self.first_lanes = 0
        self.in_halves = False
        self.first_index = "0"  # of lane 0 in its threadgroup
        self.prefetches_in_loops = True
        self.looks_ahead = False  # outside of loops, see prefetch.py
        self.parameter_vectors: dict[str, str] = {}  # of parameters that are varying
        self.blocks: list[EmittedBlock] = []
        self._attachment = ""
        self._current = EmittedBlock("")  # not one of the blocks before the first label
        self._lines = self._current.lines
        self.declarations: dict[str, str] = {}
        self.slots: dict[Slot, str] = {}
        self.required_vectors: set[str] = set()  # inexact values that are not only addresses
        self.live_out: set[str] = set()  # values used in other blocks
        self.leaving: set[str] = set()  # values used after the divergent loop that defines them
        self.computed_by = {i.result: i for i in divergence.function.instructions() if i.result}
        self.pairs: dict[str, tuple[str, str]] = {}  # results of compare-exchanges
        self.streamed: set[Instruction] = set()  # non-temporal stores
        self.uses: Counter[str] = Counter()  # how often a value is an operand
        self.groups: dict[Instruction, tuple[object, int]] = {}  # by find_groups
        self._scalars: dict[str, str] = {}
        self._vectors: dict[str, str] = {}
        self._mask_as_bits: dict[str, str] = {}
        self._shared: dict[object, Any] = {}
        self._count = 0

    # -- text

    def locate(self, debug: str) -> None:
        """Give what follows a ``!dbg`` attachment; none if `debug` is empty."""
        self._attachment = f", !dbg {debug}" if debug else ""

    def emit(self, text: str) -> None:
        """Add an instruction without a result."""
        self._lines.append(f"  {text}{self._attachment}")

    def new(self, text: str) -> str:
        """Add an instruction; the name of its result."""
        self._count += 1
        self._lines.append(f"  %v{self._count} = {text}{self._attachment}")
        return f"%v{self._count}"

    def label(self, name: str) -> None:
        """Begin a block of the emitted code."""
        self.blocks.append(EmittedBlock(name))
        self._continue(self.blocks[-1])

    def _continue(self, block: EmittedBlock) -> None:
        self._current, self._lines = block, block.lines

    @property
    def emitted_block(self) -> EmittedBlock:
        """The block that instructions are added to."""
        return self._current

    @contextmanager
    def at_end_of(self, block: EmittedBlock) -> Iterator[None]:
        """Add instructions to an earlier block."""
        current = self._current
        self._continue(block)
        yield
        self._continue(current)

    def fresh_label(self, stem: str) -> str:
        """An unused label."""
        self._count += 1
        return f"{stem}{self._count}"

    def wide(self, type: Type) -> str:
        """The vector of a `type` of each lane."""
        return f"<{self.width} x {type}>"

    def call(self, result: str, callee: str, arguments: Iterable[tuple[str, str]]) -> str:
        """Declare and call a function; return its result if it has one.

        Parameters
        ----------
        result : str
            Type of the result, fast-math flags before it.
        callee : str
        arguments : iterable of (str, str)
            Type and value of each.
        """
        given = list(arguments)
        plain = result.split(" ")[-1] if "<" not in result else result[result.index("<") :]
        types = ", ".join(type.split(" align ")[0] for type, _ in given)
        self.declarations[callee] = f"declare {plain} {callee}({types})"
        text = f"call {result} {callee}({', '.join(f'{t} {v}' for t, v in given)})"
        if plain == "void":
            self.emit(text)
            return ""
        return self.new(text)

    # -- the ends of blocks

    def br(self, target: str) -> None:
        """End the block with a branch."""
        self.emit(f"br label %{target}")
        self._current.successors = [target]

    def cond_br(self, condition: str, yes: str, no: str) -> None:
        """End the block with a branch on an ``i1``."""
        self.emit(f"br i1 {condition}, label %{yes}, label %{no}")
        self._current.successors = [yes, no]

    def ret(self, returned: Return, value: str = "") -> None:
        """End the block with a return of an ``i64``, or of nothing."""
        self.emit(f"ret i64 {value}" if value else "ret void")
        self._current.returned = returned

    def unreachable(self) -> None:
        """End a block that never ends: it has called a function that does not return."""
        self.emit("unreachable")

    # -- slots

    def slot(self, kind: SlotKind, name: str, type: str) -> Slot:
        """The slot of a value or block."""
        slot = Slot.of(kind, name)
        self.slots.setdefault(slot, type)
        return slot

    def load_slot(self, slot: Slot, align: int = _SLOT_ALIGNMENT) -> str:
        """The contents of a slot."""
        self._current.accesses.append(SlotAccess(slot, is_store=False))
        return self.new(f"load {self.slots[slot]}, ptr {slot}, align {align}")

    def store_slot(self, value: str, slot: Slot, align: int = _SLOT_ALIGNMENT) -> None:
        """Replace the contents of a slot."""
        self._current.accesses.append(SlotAccess(slot, is_store=True))
        self.emit(f"store {self.slots[slot]} {value}, ptr {slot}, align {align}")

    def address_of(self, slot: Slot) -> str:
        """The address of a slot, for other uses than loads and stores of all of it."""
        self._current.escaping.add(slot)
        return str(slot)

    # -- state of a block

    def begin(self, block: str) -> None:
        """Forget what earlier blocks had in registers."""
        self.block, self.pairs = block, {}
        self._scalars, self._vectors, self._mask_as_bits, self._shared = {}, {}, {}, {}

    def registers(self) -> tuple[dict[str, str], dict[str, str]]:
        """The values in registers now, to restore them."""
        return dict(self._scalars), dict(self._vectors)

    def restore(self, saved: tuple[dict[str, str], dict[str, str]]) -> None:
        """Come back to what `registers` gave."""
        self._scalars, self._vectors = dict(saved[0]), dict(saved[1])
        self._mask_as_bits, self._shared = {}, {}

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Write code on a separate path: values that it computes are not available after it."""
        saved = dict(self._scalars), dict(self._vectors), dict(self._mask_as_bits)
        yield
        self._scalars, self._vectors, self._mask_as_bits = saved

    def remember(self, key: object, emitted: Any) -> None:
        """Keep what more than one instruction needs, until the block ends."""
        self._shared[key] = emitted

    def remembered(self, key: object) -> Any:
        """The value given to `remember`, if any."""
        return self._shared.get(key)

    # -- values

    def shape(self, value: Value) -> Shape:
        """Shape of `value` in the block being written."""
        return self.divergence.shape(value, self.block)

    def own_shape(self, value: Value) -> Shape:
        """Shape of `value` where it is computed."""
        return self.divergence.shapes[value.name]

    def is_uniform(self, value: Value) -> bool:
        """Whether all lanes have the same."""
        return self.shape(value).is_uniform

    def scalar(self, value: Value) -> str:
        """The one value of all lanes, or that of lane 0 of an indexed value."""
        if value.is_constant:
            return value.name
        name = value.name
        if name not in self._scalars:
            if not self.divergence.home(value):
                return name  # a parameter
            slot = self.slot(SlotKind.SCALAR, name, str(value.type))
            self._scalars[name] = self.load_slot(slot, SCALAR_BYTES)
        return self._scalars[name]

    def vector(self, value: Value) -> str:
        """The values of all lanes."""
        name = value.name
        if name in self._vectors:
            return self._vectors[name]
        wide = self.wide(value.type)
        if value.is_constant:
            return self.splat(name, value.type)
        if name in self.parameter_vectors:
            return self.parameter_vectors[name]
        shape = self.own_shape(value)
        if self.divergence.leaves_loop(value, self.block):
            emitted = self.load_slot(self.slot(SlotKind.LIVE_OUT, name, wide))
        elif shape.offsets is None or not shape.exact:
            emitted = self.load_slot(self.slot(SlotKind.VECTOR, name, wide))
        elif shape.is_uniform:
            emitted = self.splat(self.scalar(value), value.type)
        elif isinstance(value.type, Pointer):
            offsets = self.constants(I64, shape.offsets)
            base = self.scalar(value)
            emitted = self.new(f"getelementptr i8, ptr {base}, <{self.width} x i64> {offsets}")
        else:
            base = self.splat(self.scalar(value), value.type)
            emitted = self.new(f"add {wide} {base}, {self.constants(value.type, shape.offsets)}")
        self._vectors[name] = emitted
        return emitted

    def splat(self, scalar: str, type: Type) -> str:
        """A vector with `scalar` in every lane."""
        if scalar in ("undef", "poison", "zeroinitializer"):
            return scalar
        if scalar == "null":
            return "zeroinitializer"
        if scalar[0] not in "%@" and not scalar.startswith(("getelementptr", "inttoptr")):
            return f"splat ({type} {scalar})"
        wide = self.wide(type)
        first = self.new(f"insertelement {wide} poison, {type} {scalar}, i64 0")
        zeros = f"<{self.width} x i32> zeroinitializer"
        return self.new(f"shufflevector {wide} {first}, {wide} poison, {zeros}")

    def constants(self, type: Type, numbers: Iterable[int]) -> str:
        """A constant vector."""
        bits = type.bits if isinstance(type, Integer) else 64
        signed = [(n + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for n in numbers]
        return "<" + ", ".join(f"{type} {n}" for n in signed) + ">"

    def lane(self, value: Value, lane: int) -> str:
        """The value of one lane."""
        return self.new(f"extractelement {self.wide(value.type)} {self.vector(value)}, i64 {lane}")

    def instruction_here(self, value: Value) -> Instruction | None:
        """The instruction that computes `value`, if it stands in the block being written."""
        here = self.divergence.home(value) == self.block
        return self.computed_by.get(value.name) if here else None

    def set(self, instruction: Instruction, scalar: str = "", vector: str = "") -> None:
        """Record what an instruction computes, and store it where other blocks look for it."""
        name, type = instruction.result, instruction.type
        outlives = name in self.live_out
        if scalar:
            self._scalars[name] = scalar
            if outlives:
                self.store_slot(scalar, self.slot(SlotKind.SCALAR, name, str(type)), SCALAR_BYTES)
        if vector:
            if self.poisons_inactive_lanes and self.mask is not None:
                vector = self.blend(self.active(), vector, self.splat(garbage(type), type), type)
            self._vectors[name] = vector
            if outlives:
                self.store_slot(vector, self.slot(SlotKind.VECTOR, name, self.wide(type)))
        if name in self.leaving:
            # Lanes that have left the loop keep what they left with.
            slot = self.slot(SlotKind.LIVE_OUT, name, self.wide(type))
            value = self.vector(instruction.value)
            bits = self.mask_as_bits()
            if bits is not None:
                value = self.blend(bits, value, self.load_slot(slot), type)
            self.store_slot(value, slot)

    def blend(self, bits: str, yes: str, no: str, type: Type) -> str:
        """`yes` where a bit is set, else `no`."""
        wide = self.wide(type)
        return self.new(f"select {self.wide(I1)} {bits}, {wide} {yes}, {wide} {no}")

    # -- masks

    @property
    def all_lanes(self) -> str:
        """The mask of all lanes."""
        return f"splat ({self.mask_type} -1)" if self.mask_type != I1 else "splat (i1 true)"

    def load_mask(self, slot: Slot) -> str:
        """A mask from its slot."""
        self.slots.setdefault(slot, self.wide(self.mask_type))
        return self.load_slot(slot)

    def store_mask(self, mask: str, slot: Slot) -> None:
        """A mask to its slot."""
        self.slots.setdefault(slot, self.wide(self.mask_type))
        self.store_slot(mask, slot)

    def mask_as_bits(self, mask: str | None = "") -> str | None:
        """A mask (the current one if none is given) as ``<W x i1>``; None for all lanes."""
        mask = self.mask if mask == "" else mask
        if mask is None or self.mask_type == I1:
            return mask
        if mask not in self._mask_as_bits:
            wide = self.wide(self.mask_type)
            self._mask_as_bits[mask] = self.new(f"icmp ne {wide} {mask}, zeroinitializer")
        return self._mask_as_bits[mask]

    def active(self) -> str:
        """Active lanes as ``<W x i1>``, whether or not all are."""
        return self.mask_as_bits() or "splat (i1 true)"

    def mask_and(self, mask: str | None, condition: str) -> str:
        """The lanes of `mask` for which `condition` holds, which may be poison in the others."""
        bits = self.wide(I1)
        if self.mask_type == I1:
            if mask is None:
                return condition
            return self.new(f"select {bits} {mask}, {bits} {condition}, {bits} zeroinitializer")
        frozen = self.new(f"freeze {bits} {condition}")
        wide = self.wide(self.mask_type)
        widened = self.new(f"sext {bits} {frozen} to {wide}")
        return widened if mask is None else self.new(f"and {wide} {mask}, {widened}")

    def any(self, mask: str) -> str:
        """Whether a lane of `mask` is active, as an ``i1``."""
        return self._test(mask, "ne", "or", "0")

    def all(self, mask: str) -> str:
        """Whether every lane of `mask` is active."""
        return self._test(mask, "eq", "and", "-1")

    def _test(self, mask: str, relation: str, fold: str, against: str) -> str:
        if self.mask_type == I1:
            number = self.bits_as_integer(mask)
            return self.new(f"icmp {relation} i{self.width} {number}, {against}")
        type = self.mask_type
        callee = f"@llvm.vector.reduce.{fold}.v{self.width}{type}"
        total = self.call(str(type), callee, [(self.wide(type), mask)])
        return self.new(f"icmp {relation} {type} {total}, {against}")

    def bits_as_integer(self, bits: str) -> str:
        """``<W x i1>`` as an integer of W bits, lane 0 the lowest."""
        return self.new(f"bitcast {self.wide(I1)} {bits} to i{self.width}")


def garbage(type: Type) -> str:
    """A value that shows where it does not belong."""
    if isinstance(type, Float):
        nan = {"half": "0xH7E00", "bfloat": "0xR7FC0"}
        return nan.get(type.name, "0x7FF8000000000000")
    if isinstance(type, Pointer):
        return f"inttoptr (i64 {0x2AAAAAAAAAAAAAAA} to ptr)"  # no address of any process
    assert isinstance(type, Integer)
    return "true" if type == I1 else str(0xAAAAAAAAAAAAAAAA & (1 << type.bits - 1) - 1)


def fast_math(instruction: Instruction) -> str:
    """The flags of an instruction that hold for its vector form as well, for before its type."""
    return "".join(f"{flag} " for flag in instruction.flags if flag in FAST_MATH)
