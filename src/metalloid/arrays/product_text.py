"""The text of a matrix product: how its factors are read, and what becomes of its sums.

The loops stand in ``products.metal``. The kernel gives them three structs, whose calls read an
element of either factor and take a sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metalloid.arrays.access import BUNDLE, RESULT, Access, Axes
from metalloid.arrays.bundles import leaves_of, packed_factor
from metalloid.arrays.layout import Ints, collapsed
from metalloid.arrays.product_rule import FLOATS, TILE
from metalloid.arrays.steps import Factor, FusedKernel, ProductKernel, Source
from metalloid.arrays.text import Writer
from metalloid.arrays.types import DType, kind_of, msl_name
from metalloid.arrays.wide_text import UNROLLED
from metalloid.runtime.program import Size
from metalloid.runtime.traits import Traits


@dataclass(frozen=True)
class Form:
    """A way to make tiles; its numbers stand in its ``.metal`` file too.

    Attributes
    ----------
    name : str
        Of ``numpy::multiply_in_...``.
    tile, threads : int
        Rows and columns of a tile, and the threads that make it.
    room : str
        Threadgroup memory in elements: a constant, or a template of the type or the sums.
    files : tuple of str
    has_fours : bool
        Whether factors are read four elements at a time.
    of_factors : bool
        Whether tiles hold the factors' type, not that of sums.
    """

    name: str
    tile: int
    threads: int
    room: str
    files: tuple[str, ...] = ()
    has_fours: bool = False
    of_factors: bool = False


_WIDE = ("wide.metal", "wide_products.metal")
REGISTERS = Form("registers", TILE, 512, "product_room<{T}>()")
SIMDGROUPS = Form("simdgroups", TILE, 512, "product_room<{T}>()")
SQUARES = Form("squares", 128, 256, "square_room<8>()", _WIDE, True)
SMALL_SQUARES = Form("squares", 64, 256, "square_room<4>()", _WIDE, True)
TENSORS = Form("tensors", 128, 128, "tensor_room", ("wide.metal", "tensor_products.metal"), True,
               True)  # fmt: skip
#: So many large squares keep a device busy.
_MANY_TILES = 128


def form_of(kernel: ProductKernel, traits: Traits) -> Form:
    """How a product is made on a device."""
    dtype = kernel.factors[0].dtype
    if kernel.in_simdgroups:
        is_half = dtype in FLOATS and dtype.itemsize == 2
        return TENSORS if traits.has_tensor_cores and is_half else SIMDGROUPS
    if not traits.has_thin_threads or dtype.itemsize > 4:  # squares of others take too much room
        return REGISTERS
    *batch, rows, columns = kernel.space
    tiles = -(-rows // SQUARES.tile) * -(-columns // SQUARES.tile) * math.prod(batch)
    is_large = min(rows, columns) > SMALL_SQUARES.tile and tiles >= _MANY_TILES
    return SQUARES if is_large else SMALL_SQUARES


_PLACES = ("row", "column")


class _TileAxes(Axes):
    """Axes of a part: those of the batch, put together for all parts, and a row and a column."""

    def __init__(self, batch: Ints, accesses: dict[int, Access]) -> None:
        self.kept, self.row, self.form = batch, (1, 1), "row"
        self.accesses = accesses


class _PartWriter(Writer):
    """Writes a struct with the pointers of a part and a function for one element."""

    def __init__(self, part: FusedKernel, sources: Sequence[Source], axes: Axes, prefix: str,
                 buffers: list[int], keeps_numbers: bool) -> None:  # fmt: skip
        super().__init__(part, sources, axes)
        self.prefix, self._buffers = prefix, buffers
        numbers = "Numbers given" if keeps_numbers else "constant Numbers &given"
        self._fields: list[tuple[str, str]] = [(numbers, "given")]
        self._places = [f"k{axis}" for axis in range(len(axes.kept))]
        self._parts: dict[int, str] = {}

    def parameters(self) -> list[int]:
        return self._buffers

    def _pointer(self, declaration: str, text: str) -> None:
        self._fields.append((declaration, text))

    def _count(self, place: int, text: str) -> str:
        self._fields.append((f"long c{place}", text))
        return f"c{place}"

    def _value(self, place: int, row: Sequence[str]) -> None:
        entry = self.entries[place]
        type_ = msl_name(entry.dtype)
        value = self._parts.get(place, f"{type_}(sum)" if entry.kind == "product" else "")
        if not value:
            super()._value(place, row)
            return
        self._names[place] = f"v{place}"
        self._line(f"const {type_} v{place} = {value};")

    def four(self, packed: frozenset[int], sum_type: str, is_down: bool) -> list[str]:
        """A function for four elements of a factor, beside or below each other."""
        self.lines, self._depth = [], 2
        place, parts = "row" if is_down else "column", {}
        for load in sorted(packed):
            access = self.axes.accesses[load]
            at = f"{access.pointer} + {self._index(load, _PLACES)}"
            type_ = msl_name(self.entries[load].dtype)
            self._line(f"const numpy::four<{type_}> q{load} = numpy::read_four({at});")
            parts[load] = f"q{load}[e]"
        self._line(UNROLLED)
        self._line(f"for (ushort e = 0; e < {BUNDLE}; ++e) {{")
        self._line(f"  const uint at = {place} + e;")
        self._depth += 1
        self._parts = parts
        self._compute([self.kernel.result], set(), ("at", "column") if is_down else ("row", "at"))
        self._line(f"to[e] = {sum_type}({self._names[self.kernel.result]});")
        self._depth -= 1
        self._line("}")
        head = f"  METAL_FUNC void four(uint row, uint column, thread {sum_type} *to) const {{"
        return [head, *self.lines, "  }"]

    def struct(self, name: str, sum_type: str) -> list[str]:
        """The lines of the struct, without its end."""
        self._pointers()
        self._depth = 2
        result = self.kernel.result
        self._compute([result], set(), _PLACES)
        parameters = "uint row, uint column"
        if RESULT in self.axes.accesses:
            self._store(self._names[result], _PLACES)
            parameters += f", {sum_type} sum"
            type_ = "void"
        else:
            self._line(f"return {self._names[result]};")
            type_ = msl_name(self.entries[result].dtype)
        fields = [f"  {declaration};" for declaration, _ in self._fields]
        head = f"  METAL_FUNC {type_} operator()({parameters}) const {{"
        return [f"struct {name} {{", *fields, "", head, *self.lines, "  }"]

    def made(self, name: str) -> str:
        """The statement that makes one, in the kernel."""
        values = ", ".join(text for _, text in self._fields)
        return f"  const {name} {name.lower()}{{{values}}};"


def sum_type(dtype: DType) -> str:
    """What MSL adds products in."""
    if kind_of(dtype) in "iu":  # overflow of signed integers has no meaning in C++
        return "uint" if dtype.itemsize <= 4 else "ulong"
    return "float" if dtype in FLOATS else msl_name(dtype)


class ProductWriter:
    """Writes the kernel of a product.

    Attributes
    ----------
    structs, lines : list of str
        What stands in front of the kernel, and its statements.
    members : list of Member
    buffers : list of int
        Sources, in the order of the parameters.
    shape : tuple of int
        Rows, columns and depth.
    batch : tuple of int
        Extents.
    """

    def __init__(self, kernel: ProductKernel, sources: Sequence[Source], form: Form,
                 is_aligned: bool) -> None:  # fmt: skip
        self.kernel, self.sources, self.form = kernel, sources, form
        self.is_aligned = is_aligned
        self.parts = [*(_as_kernel(factor) for factor in kernel.factors), kernel]
        reads = [e.data for part in self.parts for e in part.entries if e.kind in _READS]
        self.buffers = [*dict.fromkeys(reads), kernel.out]
        self.shape = (*kernel.space[-2:], kernel.factors[0].space[-1])
        accesses = {
            (k, place): strides
            for k, part in enumerate(self.parts)
            for place, strides in _strides_of(part).items()
        }
        batch, batch_strides = collapsed(
            kernel.space[:-2], *(strides[:-2] for strides in accesses.values())
        )
        own: list[dict[int, Access]] = [{}, {}, {}]
        for (k, place), kept in zip(accesses, batch_strides, strict=True):
            own[k][place] = Access("", kept, accesses[k, place][-2:])
        if len(batch) == 1 and _is_one_matrix(self.shape[0], own):
            rows = self.shape[0]
            self.shape = (batch[0] * rows, *self.shape[1:])
            for access in [access for part in own for access in part.values()]:
                if rows == 1 and access.kept != (0,):
                    access.row = (access.kept[0], access.row[1])
                access.kept = ()
            batch = ()
        self.batch = batch
        self.aligned: tuple[tuple[int, int], ...] = ()
        keeps_numbers = form.has_fours  # where threads have registers, and barriers load them again
        self.writers = [
            _PartWriter(part, sources, _TileAxes(batch, each), prefix, self.buffers, keeps_numbers)
            for part, each, prefix in zip(self.parts, own, ("left_", "right_", ""), strict=True)
        ]

    def write(self) -> None:
        """All lines."""
        root, form = self.writers[-1], self.form
        dtype = self.kernel.factors[0].dtype
        added = sum_type(dtype)
        type_ = msl_name(dtype) if form.of_factors else added
        names = ("Left", "Right", "Store")
        downs = [_is_down(factor) for factor in self.kernel.factors]
        self.structs = []
        for k, (writer, name) in enumerate(zip(self.writers, names, strict=True)):
            self.structs += writer.struct(name, added)
            if form.has_fours and name != "Store":
                self.structs += self._four(writer, type_, downs[k])
            self.structs += ["};", ""]
        each = [str(form.tile // 16)] if form.name == "squares" else []
        given = [type_, *each, *("true" if is_down else "false" for is_down in downs)]
        self.lines = [f"  threadgroup {type_} tiles[numpy::{form.room.format(T=type_)}];"]
        self._batch()
        self.lines += [w.made(name) for w, name in zip(self.writers, names, strict=True)]
        size = ", ".join(
            root._member(name, "uint", "I", extent)
            for name, extent in zip(("rows", "columns", "depth"), self.shape, strict=True)
        )
        self.lines += [
            f"  numpy::multiply_in_{form.name}<{', '.join(given)}>(",
            f"      tiles, left, right, store, uint3({size}),",
            f"      group, {'simdgroup * 32 + lane' if form.has_fours else 'simdgroup, lane'});",
        ]
        self.members = [member for writer in self.writers for member in writer.members]

    def _four(self, writer: _PartWriter, type_: str, is_down: bool) -> list[str]:
        part, packed = writer.kernel, frozenset[int]()
        if self.is_aligned:
            packed = packed_factor(part, self.sources, writer.axes, is_down)
        self.aligned += leaves_of(packed, part, self.sources)
        return writer.four(packed, type_, is_down)

    def launch(self) -> tuple[Size, Size]:
        """Threads of the grid and of a threadgroup."""
        rows, columns, _ = self.shape
        across, down = -(-columns // self.form.tile), -(-rows // self.form.tile)
        threads = self.form.threads
        return (across * threads, down, math.prod(self.batch)), (threads, 1, 1)

    def _batch(self) -> None:
        """The place along each axis of the batch."""
        root = self.writers[-1]
        rest = "group.z"
        for axis in range(len(self.batch) - 1, 0, -1):
            extent = root._member(f"extent{axis}", "uint", "I", self.batch[axis])
            self.lines.append(f"  const uint k{axis} = {rest} % {extent};")
            rest = f"{rest} / {extent}"
        if self.batch:
            self.lines.append(f"  const uint k0 = {rest};")


_READS = ("load", "gather")


def _as_kernel(factor: Factor) -> FusedKernel:
    return FusedKernel(factor.space, (), factor.entries, factor.result, -1, ())


def _strides_of(part: FusedKernel) -> dict[int, Ints]:
    """By entry that is read, and of the result if it is the part that writes it."""
    read = {place: entry.strides for place, entry in enumerate(part.entries) if entry.is_read}
    return {**read, RESULT: part.strides} if part.out >= 0 else read


def _is_one_matrix(rows: int, parts: Sequence[dict[int, Access]]) -> bool:
    """Whether the rows of a whole batch are those of one matrix: the right factor is the same."""
    left, right, result = (list(part.values()) for part in parts)
    if any(access.kept != (0,) for access in right):
        return False
    return rows == 1 or all(a.kept == (a.row[0] * rows,) for a in left + result)


def _is_down(factor: Factor) -> bool:
    """Whether memory lies along columns rather than rows."""
    ends = [tuple(map(abs, e.strides[-2:])) for e in factor.entries if e.kind in _READS]
    whole = [(down, right) for down, right in ends if down and right]  # not what is broadcast
    return any(down == 1 for down, _ in whole) and not any(right == 1 for _, right in whole)
