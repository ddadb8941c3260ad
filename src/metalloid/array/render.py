"""From a fused kernel to its MSL text, and to the numbers that go with it.

The text depends on structure only: extents, strides and the numbers of an expression are members of
``struct Numbers``, so that arrays of other shapes find the kernel compiled.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from metalloid.array.layout import Ints, collapsed
from metalloid.array.ops import REDUCTIONS
from metalloid.array.plan import FusedKernel, Source
from metalloid.array.trace import Entry
from metalloid.array.types import complex64, complex128, float64, kind_of, msl_name

_INDENT = "  "
#: Lanes of a simdgroup, which shares a row.
_LANES = 32
#: Elements of a row whose sum is one term of the row's sum: rounding errors do not pile up.
_BLOCK = {"row": 4096, "column": 128}
#: Rows shorter than this are read by one thread each.
_SHORT_ROW = 16
#: An inner axis shorter than this shares its threads with the next one.
_NARROW = 64
_WIDE = 2**31

#: How a number of an expression is handed over: format of `struct`, type in MSL.
_NUMBER_FORMATS = {"f": ("f", "float"), "i": ("q", "long"), "u": ("Q", "ulong"), "b": ("i", "int")}


@dataclass(frozen=True)
class Member:
    """A member of ``struct Numbers``.

    Attributes
    ----------
    name, type, format : str
    value : int
        If it is known; otherwise where it comes from:
    leaf : int
        The leaf whose start is added to `value`, or -1.
    number : int
        The place among the graph's nodes of a number, or -1.
    part : str
        ``"real"`` or ``"imag"``, of a complex number.
    """

    name: str
    type: str
    format: str
    value: int = 0
    leaf: int = -1
    number: int = -1
    part: str = ""


@dataclass
class Rendered:
    """A kernel's text, and how to launch it.

    Attributes
    ----------
    name, text : str
    buffers : list of int
        Sources, in the order of the parameters; the one that is written comes last.
    members : list of Member
    threads : tuple of int
    group_size : tuple of int or None
    files : tuple of str
        The ``.metal`` files that the text calls.
    """

    name: str
    text: str
    buffers: list[int]
    members: list[Member]
    threads: tuple[int, int, int]
    group_size: tuple[int, int, int] | None
    files: tuple[str, ...]


def render(kernel: FusedKernel, sources: Sequence[Source]) -> Rendered:
    """The text of a kernel."""
    return _Writer(kernel, sources).write()


@dataclass
class _Access:
    """How a memory is read or written: the name of a pointer, and strides of kept and row axes."""

    pointer: str
    kept: Ints
    row: Ints


@dataclass
class _Writer:
    kernel: FusedKernel
    sources: Sequence[Source]
    lines: list[str] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)

    def __post_init__(self) -> None:
        kernel = self.kernel
        self.entries = kernel.entries
        self.rows = bool(kernel.row_axes)
        self._names: dict[int, str] = {}
        self._accesses: dict[int, _Access] = {}
        self._strides: dict[tuple[int, int], str] = {}
        self._depth = 1
        self._collapse()
        self.form = self._form()

    # -- axes

    def _collapse(self) -> None:
        """Kept and row extents, as few as can be, and the strides of every access along them."""
        kernel = self.kernel
        space = kernel.space
        read = [k for k, entry in enumerate(self.entries) if entry.strides]
        out = kernel.strides[: len(space)]
        all_strides = [self.entries[k].strides for k in read]
        kept_axes = tuple(k for k in range(len(space)) if k not in kernel.row_axes)

        def along(axes: Ints) -> tuple[Ints, list[Ints]]:
            shape = tuple(space[k] for k in axes)
            chosen = [tuple(strides[k] for k in axes) for strides in [*all_strides, out]]
            return collapsed(shape, *chosen)

        self.kept, kept = along(kept_axes)
        self.row, row = along(kernel.row_axes)
        if self.rows and not self.row:
            self.row, row = (1,), [(0,)] * len(row)
        self.chunks = 1
        if kernel.chunk:
            self.chunks = -(-self.row[0] // kernel.chunk)
            self.kept = (self.chunks, *self.kept)
            steps = [*(r[0] * kernel.chunk for r in row[:-1]), kernel.strides[-1]]
            kept = [(step, *k) for step, k in zip(steps, kept, strict=True)]
        for place, k, r in zip([*read, -1], kept, row, strict=True):
            self._accesses[place] = _Access("", k, r)

    def _form(self) -> str:
        """Who computes a row: ``"row"``, a simdgroup; ``"column"``, a thread; ``"map"``: none."""
        if not self.rows:
            return "map"
        inner = [(a.kept[-1:] or (0,), a.row[-1]) for a in self._accesses.values()]
        columns = sum(kept == (1,) and abs(row) != 1 for kept, row in inner)
        rows = sum(row == 1 for _, row in inner)
        if math.prod(self.row) < _SHORT_ROW and math.prod(self.kept) >= _LANES:
            return "column"
        return "column" if columns > rows else "row"

    # -- text

    def write(self) -> Rendered:
        buffers = self._parameters()
        body_start = len(self.lines)
        self._positions()
        self._pointers()
        if self.form == "map":
            self._compute([self.kernel.result], set())
            self._store(self._names[self.kernel.result])
        else:
            self._passes()
        body, self.lines = self.lines[body_start:], []
        text = self._head(buffers) + "\n".join(body) + "\n}\n"
        grid, group = self._launch()
        return Rendered(self.name(), text, buffers, self.members, grid, group, self._files())

    def _line(self, text: str) -> None:
        self.lines.append(_INDENT * self._depth + text)

    def _member(self, name: str, type_: str, format_: str, value: int = 0, leaf: int = -1,
                number: int = -1, part: str = "") -> str:  # fmt: skip
        self.members.append(Member(name, type_, format_, value, leaf, number, part))
        return f"given.{name}"

    def _parameters(self) -> list[int]:
        """The sources, in the order of their parameters."""
        order = [e.data for e in self.entries if e.kind in ("load", "gather")]
        return [*dict.fromkeys(order), self.kernel.out]

    def _head(self, buffers: list[int]) -> str:
        self.members.sort(key=lambda member: -struct.calcsize(member.format))
        members = "".join(f"  {m.type} {m.name};\n" for m in self.members)
        parameters = [
            f"device const {msl_name(self.sources[source].dtype)} *x{k} [[buffer({k})]]"
            for k, source in enumerate(buffers[:-1])
        ]
        last = len(parameters)
        parameters.append(
            f"device {msl_name(self.sources[buffers[-1]].dtype)} *out [[buffer({last})]]"
        )
        if self.members:
            parameters.append(f"constant Numbers &given [[buffer({last + 1})]]")
        parameters.append("uint3 at [[thread_position_in_grid]]")
        given = f"struct Numbers {{\n{members}}};\n\n" if self.members else ""
        return f"{given}kernel void {self.name()}(\n    " + ",\n    ".join(parameters) + ")\n{\n"

    def name(self) -> str:
        """What the kernel is called: its last few operations."""
        words = [
            entry.data if isinstance(entry.data, str) else entry.data.name
            for entry in self.entries
            if entry.kind in ("map", "reduce")
        ]
        return "_".join(["array", *dict.fromkeys(words[-4:])])

    def _positions(self) -> None:
        """The place along each kept axis, outermost first."""
        kept = self.kept
        self._places: list[str] = [""] * len(kept)
        if self.form == "row":
            names, first = ["at.y"], len(kept) - 1
        else:
            names, first = ["at.x", "at.y"], len(kept) - 1
        self._flat = 0
        if self.form != "row" and len(kept) > 1 and kept[-1] < _NARROW:
            # A literal, so that the compiler divides by multiplying.
            self._flat = kept[-1]
            self._line(f"const uint i0 = at.x % {self._flat}, i1 = at.x / {self._flat};")
            self._places[-1], self._places[-2] = "i0", "i1"
            names, first = ["at.y"], len(kept) - 3
        for name in names:
            if first >= 0:
                self._places[first] = name
                first -= 1
        if first == 0:
            self._places[0] = "at.z"
        elif first > 0:
            self._line("uint rest = at.z;")
            for axis in range(first, 0, -1):
                extent = self._member(f"extent{axis}", "uint", "I", kept[axis])
                self._line(f"const uint k{axis} = rest % {extent};")
                self._line(f"rest /= {extent};")
                self._places[axis] = f"k{axis}"
            self._places[0] = "rest"

    def _pointers(self) -> None:
        """A pointer for each access, at its place along all kept axes but the innermost."""
        names = {source: f"x{k}" for k, source in enumerate(self._parameters()[:-1])}
        count = 0
        for place, access in self._accesses.items():
            entry = self.entries[place] if place >= 0 else None
            source = entry.data if entry else self.kernel.out
            start = entry.start if entry else self.kernel.start
            is_leaf = self.sources[source].is_leaf
            label = f"p{count}" if entry else "to"
            terms = []
            if is_leaf or start:
                terms.append(self._member(f"{label}_start", "long", "q", start,
                                          self.sources[source].index if is_leaf else -1))  # fmt: skip
            outer = range(len(self.kept) - (self.form != "row"))
            for axis in outer:
                stride = access.kept[axis]
                if stride:
                    step = self._step(f"{label}_k{axis}", stride)
                    terms.append(f"long({self._places[axis]}) * {step}" if step else
                                 self._places[axis])  # fmt: skip
            count += entry is not None
            if entry is not None and entry.kind == "count":
                access.pointer = f"({' + '.join(terms) or '0'})"
                continue
            type_ = msl_name(self.sources[source].dtype)
            const = "const " if entry else ""
            base = names[source] if entry else "out"
            self._line(f"device {const}{type_} *{label} = {' + '.join([base, *terms])};")
            access.pointer = label

    def _step(self, name: str, stride: int) -> str:
        """A stride in the text; nothing for 1."""
        return "" if stride == 1 else self._member(name, "long", "q", stride)

    def _index(self, place: int, row: Sequence[str]) -> str:
        """Index of an access behind its pointer, at a place of the row."""
        access = self._accesses[place]
        label = access.pointer if access.pointer[0] != "(" else f"c{place}"
        terms = []
        extents = [*self.kept[-1:], *self.row] if self.form != "row" else list(self.row)
        names = [*self._places[-1:], *row] if self.form != "row" else list(row)
        strides = [*access.kept[-1:], *access.row] if self.form != "row" else list(access.row)
        for k, (name, stride, extent) in enumerate(zip(names, strides, extents, strict=False)):
            if stride == 0:
                continue
            if stride == 1:
                terms.append(name)
                continue
            is_wide = abs(stride) * extent >= _WIDE or len(names) > 1
            type_, format_ = ("long", "q") if is_wide else ("int", "i")
            if (place, k) not in self._strides:
                member = self._member(f"{label}_{k}", type_, format_, stride)
                self._strides[place, k] = member
            terms.append(f"{type_}({name}) * {self._strides[place, k]}")
        return " + ".join(terms) or "0"

    # -- values

    def _compute(self, wanted: list[int], known: set[int], row: Sequence[str] = ()) -> None:
        """Statements for entries and all they need, but for what is known."""
        needed: set[int] = set()
        pending = [place for place in wanted if place not in known]
        while pending:
            place = pending.pop()
            if place not in needed:
                needed.add(place)
                pending += [arg for arg in self.entries[place].args if arg not in known]
        for place in sorted(needed):
            self._value(place, row)
        known |= needed

    def _value(self, place: int, row: Sequence[str]) -> None:
        entry = self.entries[place]
        type_ = msl_name(entry.dtype)
        name = self._names[place] = f"v{place}"
        args = [self._names[arg] for arg in entry.args]
        if entry.kind == "number":
            text = self._number(place, entry)
            self._line(f"const {type_} {name} = {text};")
            return
        if entry.kind == "count":
            pointer = self._accesses[place].pointer
            text = f"long({pointer}) + long({self._index(place, row)})"
        elif entry.kind == "load":
            text = f"{self._accesses[place].pointer}[{self._index(place, row)}]"
        elif entry.kind == "gather":
            steps = [
                f"long({arg}) * " + self._member(f"g{place}_{k}", "long", "q", step)
                for k, (arg, step) in enumerate(zip(args, entry.steps, strict=True))
            ]
            inner = self._index(place, row)
            text = f"{self._accesses[place].pointer}[{' + '.join([*steps, inner])}]"
        else:
            operand = self.entries[entry.args[0]].dtype
            form = entry.data.float_text if kind_of(operand) == "f" else ""
            text = (form or entry.data.text).format(*args, T=type_)
            if kind_of(entry.dtype) in "iu" and entry.dtype.itemsize < 4 and " " in text:
                text = f"{type_}({text})"  # C++ computes short integers as int
        self._line(f"const {type_} {name} = {text};")

    def _number(self, place: int, entry: Entry) -> str:
        type_ = msl_name(entry.dtype)
        if entry.dtype in (complex64, complex128):
            part = "double" if entry.dtype == complex128 else "float"
            form = "d" if entry.dtype == complex128 else "f"
            real, imag = (
                self._member(f"n{place}_{of}", part, form, number=entry.data, part=of)
                for of in ("real", "imag")
            )
            return f"{type_}({real}, {imag})"
        form, msl = _NUMBER_FORMATS[kind_of(entry.dtype)]
        if entry.dtype == float64:
            form, msl = "d", "double"
        given = self._member(f"n{place}", msl, form, number=entry.data)
        return given if msl == type_ else f"{type_}({given})"

    # -- rows

    def _passes(self) -> None:
        """Loops over the row, one for each set of reductions that wait for the same others."""
        depth = [0] * len(self.entries)
        for place, entry in enumerate(self.entries):
            below = max((depth[arg] for arg in entry.args), default=0)
            depth[place] = below + (entry.kind == "reduce")
        reductions = [k for k, entry in enumerate(self.entries) if entry.kind == "reduce"]
        known: set[int] = set()
        self._row_head()
        for level in range(1, max(depth, default=0) + 1):
            self._invariants(depth, level - 1, known)
            self._reduce([k for k in reductions if depth[k] == level], known)
        self._invariants(depth, max(depth, default=0), known)
        result = self.kernel.result
        if self.entries[result].varies:
            with_row = self._open_loops(blocked=False)
            self._compute([result], set(known), with_row)
            self._store(self._names[result], with_row)
            self._close_loops()
        elif self.form == "row":
            self._line("if (at.x == 0) {")
            self._depth += 1
            self._store(self._names[result])
            self._depth -= 1
            self._line("}")
        else:
            self._store(self._names[result])

    def _row_head(self) -> None:
        extent = self._member("row0", "uint", "I", self.row[0])
        if not self.kernel.chunk:
            self._line(f"const uint row_end = {extent};")
            return
        chunk = self._member("chunk", "uint", "I", self.kernel.chunk)
        self._line(f"const uint row_end = min({chunk}, {extent} - {self._places[0]} * {chunk});")

    def _invariants(self, depth: list[int], level: int, known: set[int]) -> None:
        """What is the same for the whole row, as soon as it can be computed."""
        wanted = [
            k
            for k, entry in enumerate(self.entries)
            if not entry.varies and depth[k] <= level and entry.kind != "reduce"
        ]
        self._compute([k for k in wanted if all(self._is_known(a, known) for a in
                                                self.entries[k].args)], known)  # fmt: skip

    def _is_known(self, place: int, known: set[int]) -> bool:
        entry = self.entries[place]
        if place in known:
            return True
        return entry.kind != "reduce" and not entry.varies

    def _reduce(self, reductions: list[int], known: set[int]) -> None:
        """One loop over the row for reductions that do not need each other."""
        for place in reductions:
            entry = self.entries[place]
            type_ = msl_name(entry.dtype)
            value = msl_name(entry.dtype["value"]) if entry.dtype.names else type_
            identity = REDUCTIONS[entry.data].identity.format(T=type_, V=value)
            self._line(f"{type_} v{place} = {identity};")
            self._names[place] = f"v{place}"
        blocked = self._is_blocked(reductions)
        if blocked:
            self._open_block(reductions)
        row = self._open_loops(blocked)
        self._compute([self.entries[place].args[0] for place in reductions], set(known), row)
        for place in reductions:
            into = f"part{place}" if blocked else f"v{place}"
            self._line(
                f"{into} = {self._combine(place, into, self._names[self.entries[place].args[0]])};"
            )
        self._close_loops()
        if blocked:
            for place in reductions:
                self._line(f"v{place} = {self._combine(place, f'v{place}', f'part{place}')};")
            self._depth -= 1
            self._line("}")
        if self.form == "row":
            self._line("for (ushort distance = 16; distance > 0; distance /= 2) {")
            self._depth += 1
            for place in reductions:
                other = f"numpy::from_lane(v{place}, distance)"
                self._line(f"v{place} = {self._combine(place, f'v{place}', other)};")
            self._depth -= 1
            self._line("}")
        known |= set(reductions)

    def _combine(self, place: int, a: str, b: str) -> str:
        return REDUCTIONS[self.entries[place].data].text.format(a, b)

    def _is_blocked(self, reductions: list[int]) -> bool:
        """Whether rounding errors need the row's blocks to be added up on their own."""
        rounds = any(
            self.entries[k].data in ("sum", "prod") and kind_of(self.entries[k].dtype) in "fc"
            for k in reductions
        )
        length = self.kernel.chunk or self.row[0]
        return rounds and (len(self.row) > 1 or length > _BLOCK[self.form])

    def _open_block(self, reductions: list[int]) -> None:
        if len(self.row) > 1:
            self._line("for (uint j0 = 0; j0 < row_end; ++j0) {")
        else:
            block = _BLOCK[self.form]
            self._line(f"for (uint block = 0; block < row_end; block += {block}) {{")
            self._line(f"{_INDENT}const uint block_end = min(block + {block}, row_end);")
        self._depth += 1
        for place in reductions:
            entry = self.entries[place]
            type_ = msl_name(entry.dtype)
            value = msl_name(entry.dtype["value"]) if entry.dtype.names else type_
            identity = REDUCTIONS[entry.data].identity.format(T=type_, V=value)
            self._line(f"{type_} part{place} = {identity};")

    def _open_loops(self, blocked: bool) -> list[str]:
        """Loops over the row; the names of its places."""
        names = [f"j{axis}" for axis in range(len(self.row))]
        self._loops = 0
        for axis, name in enumerate(names):
            is_inner = axis == len(names) - 1
            first, step = ("at.x", str(_LANES)) if is_inner and self.form == "row" else ("0", "1")
            if axis == 0 and blocked and len(names) > 1:
                continue  # the block's own loop
            end = "row_end" if axis == 0 else self._extent_of_row(axis)
            if blocked and len(names) == 1:
                first = "block" if first == "0" else f"block + {first}"
                end = "block_end"
            advance = f"++{name}" if step == "1" else f"{name} += {step}"
            self._line(f"for (uint {name} = {first}; {name} < {end}; {advance}) {{")
            self._depth += 1
            self._loops += 1
        return names

    def _extent_of_row(self, axis: int) -> str:
        name = f"row{axis}"
        if not any(member.name == name for member in self.members):
            self._member(name, "uint", "I", self.row[axis])
        return f"given.{name}"

    def _close_loops(self) -> None:
        for _ in range(self._loops):
            self._depth -= 1
            self._line("}")

    def _store(self, name: str, row: Sequence[str] = ()) -> None:
        access = self._accesses[-1]
        self._line(f"{access.pointer}[{self._index(-1, row)}] = {name};")

    # -- launch

    def _launch(self) -> tuple[tuple[int, int, int], tuple[int, int, int] | None]:
        kept = self.kept
        if self.form == "row":
            inner = kept[-1] if kept else 1
            return (_LANES, inner, math.prod(kept[:-1])), (_LANES, 1, 1)
        if self._flat:
            flat = kept[-1] * kept[-2]
            second = kept[-3] if len(kept) > 2 else 1
            return (flat, second, math.prod(kept[:-3])), None
        x = kept[-1] if kept else 1
        y = kept[-2] if len(kept) > 1 else 1
        return (x, y, math.prod(kept[:-2])), None

    def _files(self) -> tuple[str, ...]:
        types = {entry.dtype["value"] if entry.dtype.names else entry.dtype
                 for entry in self.entries}  # fmt: skip
        files = []
        if types & {float64, complex128}:
            files.append("doubles.metal")
        files.append("arrays.metal")
        if self.form == "row":
            files.append("reductions.metal")
        if types & {complex64, complex128}:
            files.append("complex.metal")
        if any(entry.dtype.names for entry in self.entries):
            files.append("places.metal")
        own = (entry.data.file for entry in self.entries if entry.kind == "map")
        return tuple(dict.fromkeys([*files, *filter(None, own)]))


def pack(members: Sequence[Member], starts: Sequence[int], nodes: Sequence[Any]) -> bytes:
    """The bytes of ``struct Numbers``.

    Parameters
    ----------
    starts : sequence of int
        Of the leaves.
    nodes : sequence of Node
        Of the graph, with the numbers among them.
    """
    form = "=" + "".join(member.format for member in members)
    values: list[Any] = []
    for member in members:
        if member.number < 0:
            values.append(member.value + (starts[member.leaf] if member.leaf >= 0 else 0))
            continue
        value = nodes[member.number].data
        if member.part:
            value = getattr(complex(value), member.part)
        values.append(value)
    room = struct.pack(form, *values)
    return room + bytes(-len(room) % 8)
