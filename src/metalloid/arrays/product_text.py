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

    def __init__(self, part: FusedKernel, batch: Ints, strides: dict[int, Ints]) -> None:
        self.kept, self.row, self.form = batch, part.space[-2:], "row"
        self.accesses = {
            place: Access("", kept, _strides_of(part, place)[-2:])
            for place, kept in strides.items()
        }


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
    """

    def __init__(self, kernel: ProductKernel, sources: Sequence[Source]) -> None:
        self.kernel = kernel
        self.parts = [*(_as_kernel(factor) for factor in kernel.factors), kernel]
        reads = [e.data for part in self.parts for e in part.entries if e.kind in _READS]
        self.buffers = [*dict.fromkeys(reads), kernel.out]
        accesses = [
            (k, place)
            for k, part in enumerate(self.parts)
            for place in (*(p for p, e in enumerate(part.entries) if e.is_read), RESULT)
            if place != RESULT or part is kernel
        ]
        batch, strides = collapsed(
            kernel.space[:-2], *(_strides_of(self.parts[k], place)[:-2] for k, place in accesses)
        )
        self.batch = batch
        of_part: list[dict[int, Ints]] = [{}, {}, {}]
        for (k, place), steps in zip(accesses, strides, strict=True):
            of_part[k][place] = steps
        self.writers = [
            _PartWriter(part, sources, _TileAxes(part, batch, own), prefix, self.buffers)
            for part, own, prefix in zip(self.parts, of_part, ("left_", "right_", ""), strict=True)
        ]

    def write(self) -> None:
        """All lines."""
        *_, rows, columns = self.kernel.space
        depth = self.kernel.factors[0].space[-1]
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
            for name, extent in (("rows", rows), ("columns", columns), ("depth", depth))
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


def _strides_of(part: FusedKernel, place: int) -> Ints:
    return part.strides if place == RESULT else part.entries[place].strides


def _is_down(factor: Factor) -> bool:
    """Whether memory lies along columns rather than rows."""
    ends = [tuple(map(abs, e.strides[-2:])) for e in factor.entries if e.kind in _READS]
    return any(down == 1 for down, _ in ends) and not any(right == 1 for _, right in ends)
