"""Partial linearisation of control flow: divergent branches become masks.

Blocks are emitted in one order (Moll, Hack, PLDI 2018, figure 5). A uniform branch stays a branch;
after a divergent one both targets are visited, the nearer first, the other deferred. Blocks without
active lanes are skipped where that is profitable, and where scalar code must not run without one.
"""

from __future__ import annotations

from metalloid.compiler.analysis.barriers import barrier_blocks
from metalloid.compiler.analysis.block_order import block_order
from metalloid.compiler.analysis.divergence import Divergence
from metalloid.compiler.analysis.libcalls import is_libcall
from metalloid.compiler.analysis.target_builtins import is_lanewise
from metalloid.compiler.ir.cfg import EXIT, Loop
from metalloid.compiler.ir.function import Block
from metalloid.compiler.ir.types import I1, Unsupported
from metalloid.compiler.vectorize import instructions
from metalloid.compiler.vectorize.builder import SCALAR_BYTES, Builder
from metalloid.compiler.vectorize.control_flow import phi_demotion
from metalloid.compiler.vectorize.control_flow.lane_votes import (
    HALVES,
    all_pass_each,
    any_and_all,
    first_lanes,
)
from metalloid.compiler.vectorize.divisions import DIVISIONS
from metalloid.compiler.vectorize.emitted_code import EmittedBlock, Return
from metalloid.compiler.vectorize.slots import Slot, SlotKind

#: A masked block with more instructions than this is skipped when no lane wants it.
_WORTH_SKIPPING = 8
#: Which operand is an address, of instructions that are quicker when all lanes are active.
_ADDRESS = {"load": 0, "store": 1, "copy": 2, "fill": 2, "atomicrmw": 0}


class Linearizer:
    """Writes the blocks of a function, in order, for a simdgroup.

    Parameters
    ----------
    builder : Builder
    entry_mask : str or None
        Active lanes at the beginning; None for all.
    has_frame : bool
        Whether the simdgroup keeps a state and returns at barriers.
    """

    def __init__(self, builder: Builder, entry_mask: str | None, has_frame: bool) -> None:
        self._builder, self._entry_mask, self._has_frame = builder, entry_mask, has_frame
        self.regions: list[str] = []  # labels after the barriers
        self._region_of: dict[str, int] = {}  # by the block that ends with the barrier
        #: Blocks where lanes miss a barrier: they return once its region has a number.
        self._missing: list[tuple[EmittedBlock, str, str]] = []
        self._divergence: Divergence = builder.divergence
        self._graph = self._divergence.graph
        self._blocks = self._divergence.function.blocks
        self.order = block_order(self._graph)
        self._position = {name: position for position, name in enumerate(self.order)}
        self._deferred: dict[str, set[str]] = {name: set() for name in self.order}
        self._loop_at = {loop.header: loop for loop in self._graph.loops}
        self._latch_of = {loop.latch: loop for loop in self._graph.loops}
        self._preheaders = {loop.preheader for loop in self._graph.loops}
        self._mask_slots = {
            name: Slot.of(SlotKind.MASK, name)
            for name in self.order
            if name in self._divergence.masked
        }
        self.set_by = self._find_masks_set_once()
        self._gathered = self._find_gathered_masks()
        self._counted: set[str] = set()
        self._waiting = barrier_blocks(self._divergence.function)
        self._barriers = self._graph.bits(self._waiting)
        self._first_lanes: dict[str, int] = {}  # of blocks that the first ones come to, or none
        #: Edges that lanes follow at once, with no other block in between.
        self.straight: set[tuple[str, str]] = set()
        builder.in_halves = has_frame and any(
            one.op == "icmp" and one.operands[1].integer in HALVES
            for one in self._divergence.function.instructions()
        )
        self.dispatched = {name for name in self._mask_slots if self._accesses_vectors(name)}

    def _find_masks_set_once(self) -> dict[str, str]:
        """Blocks whose masks one edge sets, from a block that all lanes run: these blocks, by name.

        Such a mask needs nothing to begin with.
        """
        merged, graph = {}, self._graph
        for name in self._mask_slots:
            predecessors = graph.predecessors[name]
            same_level = [p for p in predecessors if graph.loop_of[p] is graph.loop_of[name]]
            if (
                len(predecessors) == len(same_level) == 1
                and predecessors[0] not in self._mask_slots
            ):
                merged[name] = predecessors[0]
        return merged

    def _find_gathered_masks(self) -> dict[Loop | None, list[Slot]]:
        """Slots of the other masks, by the loop in whose iterations they begin empty."""
        merged: dict[Loop | None, list[Slot]] = {}
        for name, slot in self._mask_slots.items():
            loop = self._graph.loop_of[name]
            if loop is not None and loop.header == name:
                loop = loop.parent  # a header's mask comes from outside
            if name not in self.set_by and name != self._graph.entry:
                merged.setdefault(loop, []).append(slot)
        return merged

    def label(self, name: str) -> str:
        """Label of a block in the text, without the %."""
        return f"b{self._position[name]}"

    def write(self) -> None:
        """Write all blocks."""
        for name in self.order:
            self._write_block(name)
        for block, lanes, barrier in self._missing:
            with self._builder.at_end_of(block):
                self._return(self._region_of[barrier], lanes)

    # -- a block

    def _write_block(self, name: str) -> None:
        builder, block = self._builder, self._blocks[name]
        builder.begin(name)
        builder.label(self.label(name))
        self._clear_masks(name)
        loop = self._loop_at.get(name)
        if loop is not None and loop.header in self._divergence.loops:
            self._deferred[name].update(loop.exits)
        slot = self._mask_slots.get(name)
        builder.mask = None if slot is None else builder.load_mask(slot)
        for phi in block.phis:
            phi_demotion.read(builder, phi)
        is_tested = self._skip_if_inactive(name)
        builder.first_lanes = self._first_lanes.get(name, 0) if is_tested else 0
        if name in self.dispatched and not builder.first_lanes:
            self._write_dispatched(name)
        else:
            self._write_body(block)
        self._write_end(name)

    def _write_body(self, block: Block) -> None:
        for instruction in block.body:
            instructions.write(self._builder, instruction)

    def _clear_masks(self, name: str) -> None:
        """Clear masks that edges accumulate: once, or in each iteration of a loop."""
        is_entry = name == self._graph.entry
        if is_entry and self._entry_mask is not None:
            self._builder.store_mask(self._entry_mask, self._mask_slots[name])
        if is_entry or name in self._loop_at:
            for slot in self._gathered.get(self._loop_at.get(name), ()):
                self._builder.store_mask("zeroinitializer", slot)

    def _skip_if_inactive(self, name: str) -> bool:
        """Skip the block if no lane is active in it; return whether that is tested."""
        builder, deferred = self._builder, self._deferred[name]
        if builder.mask is None or not deferred:
            return False
        if name in self._loop_at or name in self._latch_of or not self._should_skip(name):
            return False
        go, skip = f"{self.label(name)}.active", f"{self.label(name)}.skip"
        builder.cond_br(self._has_lanes(name, SlotKind.ANY), go, skip)
        builder.label(skip)
        self._go(set(deferred))
        builder.label(go)
        return True

    def _should_skip(self, name: str) -> bool:
        """Whether the block would do harm without an active lane, or cost much."""
        builder = self._builder
        if name in self.dispatched or name in self._preheaders:
            return True
        for instruction in self._blocks[name].body:
            if instruction.op in _ADDRESS and instruction.op != "atomicrmw":
                is_sized = (
                    instruction.op not in ("copy", "fill") or instruction.operands[1].is_constant
                )
                if not is_sized or builder.is_uniform(instruction.operands[-1]):
                    return True
            elif instruction.op in DIVISIONS:
                if not builder.own_shape(instruction.value).is_varying:
                    return True
            elif instruction.op in ("atomicrmw", "cmpxchg", "fence"):
                return True
            elif instruction.op == "call":
                callee = instruction.callee
                if is_libcall(callee) or not is_lanewise(callee):
                    return True
        return len(self._blocks[name].body) > _WORTH_SKIPPING

    def _accesses_vectors(self, name: str) -> bool:
        """Whether a masked block has accesses that are cheaper when all lanes are active."""
        return any(
            instruction.op in _ADDRESS
            and not self._divergence.shape(
                instruction.operands[_ADDRESS[instruction.op]], name
            ).is_uniform
            for instruction in self._blocks[name].body
        )

    def _write_dispatched(self, name: str) -> None:
        """The block twice: for all lanes, and for some."""
        builder, block, label = self._builder, self._blocks[name], self.label(name)
        mask = builder.mask
        every = self._has_lanes(name, SlotKind.ALL)
        builder.cond_br(every, f"{label}.all", f"{label}.masked")
        saved = builder.registers()
        for form, active in (("all", None), ("masked", mask)):
            builder.restore(saved)
            builder.label(f"{label}.{form}")
            builder.mask = active
            self._write_body(block)
            builder.br(f"{label}.end")
        builder.label(f"{label}.end")
        builder.restore(saved)
        builder.mask = mask

    # -- where it goes

    def _nearest(self, targets: set[str]) -> str:
        return min(targets, key=self._position.__getitem__)

    def _go(self, targets: set[str]) -> None:
        """Branch to the nearest of `targets`; the others are left for later."""
        nearest = self._nearest(targets)
        self._deferred[nearest] |= targets - {nearest}
        self._builder.br(self.label(nearest))

    def _write_end(self, name: str) -> None:
        builder, end, deferred = self._builder, self._blocks[name].end, self._deferred[name]
        if name == EXIT:
            self._leave(0, "0")
        elif name in self._latch_of:
            self._write_latch(self._latch_of[name])
        elif len(end.labels) == 1:
            self._activate(name, end.labels[0], None)
            if name in self._waiting:
                self._wait(name)
            elif self._nearest(deferred | {end.labels[0]}) == end.labels[0]:
                self.straight.add((name, end.labels[0]))
            self._go(deferred | {end.labels[0]})
        elif name in self._divergence.branches:
            self._write_divergent_branch(name)
        else:
            yes, no = f"{self.label(name)}.true", f"{self.label(name)}.false"
            if name in self._divergence.agreed:
                self._write_uniform_branch(name, yes, no)
            else:
                condition = builder.scalar(end.operands[0])
                builder.cond_br(condition, yes, no)
            saved = builder.registers()
            for outcome, target in ((yes, end.labels[0]), (no, end.labels[1])):
                builder.restore(saved)
                builder.label(outcome)
                self._activate(name, target, None)
                if self._nearest(deferred | {target}) == target:
                    self.straight.add((name, target))
                self._go(deferred | {target})

    def _write_divergent_branch(self, name: str) -> None:
        """Emit a divergent branch; conditions joined by `and` are first tested by lane votes."""
        builder, end = self._builder, self._blocks[name].end
        [condition], edges = end.operands, (end.labels, (True, False))
        targets = self._deferred[name] | set(end.labels)
        known = None
        if any(self.set_by.get(target) == name for target in self.dispatched & set(end.labels)):
            known = all_pass_each(builder, condition)
        if known is not None:
            all_agree, mixed = f"{self.label(name)}.uniform", f"{self.label(name)}.mixed"
            builder.cond_br(known[0], all_agree, mixed)
            saved = builder.registers()
            builder.label(all_agree)
            for target, holds in zip(*edges, strict=True):
                outcome = holds == known[1]
                self._activate(name, target, None if outcome else "zeroinitializer")
                self._note_lanes(name, target, ("true", "true") if outcome else ("false", "false"))
            self._go(targets)
            builder.restore(saved)
            builder.label(mixed)
        taken = builder.vector(condition)
        not_taken = builder.new(f"xor {builder.wide(I1)} {taken}, splat (i1 true)")
        for target, holds in zip(*edges, strict=True):
            lanes = taken if holds else not_taken
            self._activate(name, target, lanes)
            if known is None:
                counted = any_and_all(builder, condition, holds)
            elif holds == known[1]:
                counted = builder.any(builder.mask_and(None, lanes)), "false"
            else:
                mask = builder.mask_and(None, lanes)
                counted = builder.any(mask), builder.all(mask)
            self._note_lanes(name, target, counted)
            if self.set_by.get(target) == name:
                self._first_lanes[target] = first_lanes(builder, condition, holds)
        self._go(targets)

    def _write_uniform_branch(self, name: str, yes: str, no: str) -> None:
        """Emit a branch that is assumed to be uniform; if lanes diverge the launch fails.

        The fault reports the lanes at a barrier, and the others as missing.
        """
        builder, [condition] = self._builder, self._blocks[name].end.operands
        branch_edge, barrier = self._divergence.forbidden[name]
        known = any_and_all(builder, condition, True) if builder.mask is None else None
        if known is None:
            taken = builder.vector(condition)
            other = builder.new(f"xor {builder.wide(I1)} {taken}, splat (i1 true)")
            some, others = (builder.any(builder.mask_and(builder.mask, c)) for c in (taken, other))
            known = some, builder.new(f"xor i1 {others}, true")
        some, every = known
        builder.cond_br(some, f"{yes}.any", no)
        builder.label(f"{yes}.any")
        builder.cond_br(every, yes, f"{yes}.divergent")
        saved = builder.registers()
        builder.label(f"{yes}.divergent")
        going = builder.vector(condition)
        if branch_edge == 1:
            going = builder.new(f"xor {builder.wide(I1)} {going}, splat (i1 true)")
        bits = builder.mask_as_bits(builder.mask_and(builder.mask, going))
        assert bits is not None
        lanes = builder.new(f"zext i{builder.width} {builder.bits_as_integer(bits)} to i64")
        self._missing.append((builder.emitted_block, lanes, barrier))
        builder.restore(saved)

    def _note_lanes(self, name: str, target: str, known: tuple[str, str] | None) -> None:
        """Let `target` know whether any lane comes to it, and whether all do."""
        if known is not None and self.set_by.get(target) == name:
            self._counted.add(target)
            for kind, bit in zip((SlotKind.ANY, SlotKind.ALL), known, strict=True):
                self._builder.store_slot(bit, self._builder.slot(kind, target, "i1"), SCALAR_BYTES)

    def _has_lanes(self, name: str, kind: SlotKind) -> str:
        """Whether any lane, or all lanes, of the mask of a block are active."""
        builder, mask = self._builder, self._builder.mask
        if name in self._counted:
            return builder.load_slot(builder.slot(kind, name, "i1"), SCALAR_BYTES)
        assert mask is not None
        return builder.any(mask) if kind is SlotKind.ANY else builder.all(mask)

    def _wait(self, name: str) -> None:
        """Return at a barrier; the caller calls again to continue after it.

        No lane should be deferred here: the caller fails if lanes are missing. With relaxed
        barriers they wait at the block where they reconverge, as on a GPU.
        """
        if self._reach_another_barrier(self._deferred[name], name):
            barrier = self._blocks[name].body[-1]
            raise Unsupported("different threadgroup barriers for different threads").at(
                barrier.debug
            )
        builder, lanes = self._builder, self._builder.width
        bits = builder.mask_as_bits()
        arrived = str((1 << lanes) - 1)
        if bits is not None:
            arrived = builder.bits_as_integer(bits)
            if lanes < 32:
                arrived = builder.new(f"zext i{lanes} {arrived} to i32")
        self.regions.append(f"after{len(self.regions) + 1}")
        self._region_of[name] = len(self.regions)
        self._leave(len(self.regions), arrived)
        builder.label(self.regions[-1])

    def _reach_another_barrier(self, starts: set[str], name: str) -> bool:
        """Whether a path from `starts` meets a barrier that none from `name` does."""
        reach = self._graph.reach
        return any(reach[start] & ~reach[name] & self._barriers for start in starts)

    def _leave(self, region: int, arrived: str) -> None:
        """Return where the simdgroup has come to: the region, and the lanes that have arrived."""
        if not self._has_frame:
            self._builder.ret(Return(region))
            return
        if arrived.isdigit():
            returned = Return(region, int(arrived))
            self._builder.ret(returned, str(returned.value))
        else:
            self._return(region, self._builder.new(f"zext i32 {arrived} to i64"))

    def _return(self, region: int, lanes: str) -> None:
        """Return at a barrier with the lanes that have arrived, an ``i64``."""
        reached = self._builder.new(f"or i64 {lanes}, {region << 32}")
        self._builder.ret(Return(region), reached)

    def _write_latch(self, loop: Loop) -> None:
        builder = self._builder
        if loop.header not in self._divergence.loops:
            self._activate(loop.latch, loop.header, None)
            builder.br(self.label(loop.header))
            return
        mask = builder.mask
        assert mask is not None
        self._activate(loop.latch, loop.header, None)
        done = f"{self.label(loop.latch)}.done"
        any_active = builder.any(mask)
        builder.cond_br(any_active, self.label(loop.header), done)
        builder.label(done)
        self._go(set(self._deferred[loop.latch]))

    def _activate(self, name: str, target: str, condition: str | None) -> None:
        """Let the active lanes for which `condition` holds be active in `target`."""
        builder = self._builder
        lanes = builder.mask if condition is None else builder.mask_and(builder.mask, condition)
        plain = self._is_first_edge(name, target)
        slot = self._mask_slots.get(target)
        is_back = name in self._latch_of
        if slot is not None and not (is_back and target not in self._divergence.loops):
            if lanes is None or plain:
                builder.store_mask(lanes or builder.all_lanes, slot)
            else:
                wide = builder.wide(builder.mask_type)
                builder.store_mask(
                    builder.new(f"or {wide} {builder.load_mask(slot)}, {lanes}"), slot
                )
        phi_demotion.give(builder, self._blocks[target], name, lanes, plain or lanes is None)

    def _is_first_edge(self, name: str, target: str) -> bool:
        """Whether no lane can have come to `target` before, in this iteration of its loop."""
        if name in self._latch_of:
            return True
        graph = self._graph
        loop_of = graph.loop_of
        end = self._position[target]
        predecessors = [p for p in graph.predecessors[target] if self._position[p] < end]
        target_loop = loop_of[target]
        if len(predecessors) == 1:
            is_header = target_loop is not None and target_loop.header == target
            return loop_of[name] is target_loop or is_header
        first = min(predecessors, key=self._position.__getitem__)
        return first == name and loop_of[name] is target_loop
