"""The text of a matrix product: how its factors are read, and what becomes of its sums.

The loops stand in ``products.metal``. The kernel gives them three structs, whose calls read an
element of either factor and take a sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.arrays.access import RESULT, Access, Axes
from metalloid.arrays.layout import Ints, collapsed
from metalloid.arrays.product_rule import FLOATS
from metalloid.arrays.steps import Factor, FusedKernel, ProductKernel, Source
from metalloid.arrays.text import Writer
from metalloid.arrays.types import DType, kind_of, msl_name

#: Threads that make a tile; also in ``products.metal``.
THREADS = 512
_PLACES = ("row", "column")


class _TileAxes(Axes):
    """Axes of a part: those of the batch, put together for all parts, and a row and a column."""

    def __init__(self, batch: Ints, accesses: dict[int, Access]) -> None:
        self.kept, self.row, self.form = batch, (1, 1), "row"
        self.accesses = accesses


class _PartWriter(Writer):
    """Writes a struct with the pointers of a part and a function for one element."""

    def __init__(self, part: FusedKernel, sources: Sequence[Source], axes: Axes, prefix: str,
                 buffers: list[int]) -> None:  # fmt: skip
        super().__init__(part, sources, axes)
        self.prefix, self._buffers = prefix, buffers
        self._fields: list[tuple[str, str]] = [("constant Numbers &given", "given")]
        self._places = [f"k{axis}" for axis in range(len(axes.kept))]

    def parameters(self) -> list[int]:
        return self._buffers

    def _pointer(self, declaration: str, text: str) -> None:
        self._fields.append((declaration, text))

    def _count(self, place: int, text: str) -> str:
        self._fields.append((f"long c{place}", text))
        return f"c{place}"

    def _value(self, place: int, row: Sequence[str]) -> None:
        entry = self.entries[place]
        if entry.kind != "product":
            super()._value(place, row)
            return
        self._names[place] = f"v{place}"
        self._line(f"const {msl_name(entry.dtype)} v{place} = {msl_name(entry.dtype)}(sum);")

    def struct(self, name: str, sum_type: str) -> list[str]:
        """The lines of the struct."""
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
        return [f"struct {name} {{", *fields, "", head, *self.lines, "  }", "};", ""]

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

    def __init__(self, kernel: ProductKernel, sources: Sequence[Source]) -> None:
        self.kernel = kernel
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
        self.writers = [
            _PartWriter(part, sources, _TileAxes(batch, each), prefix, self.buffers)
            for part, each, prefix in zip(self.parts, own, ("left_", "right_", ""), strict=True)
        ]

    def write(self) -> None:
        """All lines."""
        root = self.writers[-1]
        type_ = sum_type(self.kernel.factors[0].dtype)
        names = ("Left", "Right", "Store")
        self.structs = [
            line
            for writer, name in zip(self.writers, names, strict=True)
            for line in writer.struct(name, type_)
        ]
        self.lines = [f"  threadgroup {type_} tiles[numpy::product_room<{type_}>()];"]
        self._batch()
        self.lines += [w.made(name) for w, name in zip(self.writers, names, strict=True)]
        size = ", ".join(
            root._member(name, "uint", "I", extent)
            for name, extent in zip(("rows", "columns", "depth"), self.shape, strict=True)
        )
        form = "simdgroups" if self.kernel.in_simdgroups else "registers"
        downs = ", ".join("true" if _is_down(factor) else "false" for factor in self.kernel.factors)
        self.lines += [
            f"  numpy::multiply_in_{form}<{type_}, {downs}>(",
            f"      tiles, left, right, store, uint3({size}),",
            "      group, simdgroup, lane);",
        ]
        self.members = [member for writer in self.writers for member in writer.members]

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
