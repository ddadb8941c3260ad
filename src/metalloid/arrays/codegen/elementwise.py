"""Statements of elementwise kernels: indices, pointers, loads and values."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, MutableMapping, Sequence
from typing import ClassVar

from metalloid.arrays.codegen.params import Member
from metalloid.arrays.ir.dtypes import complex64, complex128, float64, kind_of, msl_name
from metalloid.arrays.ir.ops import CAST
from metalloid.arrays.planning.kernel_op import KernelOp
from metalloid.arrays.planning.loop_axes import MAX_INTERLEAVED, NARROW, RESULT, Access, Axes
from metalloid.arrays.planning.schedule import BufferSpec, FusedKernel
from metalloid.runtime.launch.program import Size

_INDENT = "  "
_WIDE = 2**31

#: How constants are passed, by kind: format of `struct`, type in MSL.
_NUMBER_FORMATS = {"f": ("f", "float"), "i": ("q", "long"), "u": ("Q", "ulong"), "b": ("i", "int")}


def output_name(k: int) -> str:
    """The name of the parameter of a written buffer."""
    return f"out{k or ''}"


class Writer:
    """Writes the statements of a kernel without reductions.

    Attributes
    ----------
    lines : list of str
    members : list of Member
    flat : int
        Extent of the innermost axis if it is flattened into the next one; else 0.
    """

    #: Prefix of the names of its parameters.
    prefix = ""
    #: For a few cores, an inner axis shorter than this is flattened into the next one.
    narrow = NARROW
    #: Inner axes along which indices, not pointers, are advanced.
    index_axes = 1
    #: Strides that are literals, with which the compiler loads interleaved elements as vectors.
    literal_strides: ClassVar[Collection[int]] = frozenset({-1, *range(2, MAX_INTERLEAVED + 1)})

    def __init__(self, kernel: FusedKernel, sources: Sequence[BufferSpec], axes: Axes) -> None:
        self.kernel, self.sources, self.axes = kernel, sources, axes
        self.ops = kernel.ops
        self.lines: list[str] = []
        self.members: list[Member] = []
        self.flat = 0
        self._names: MutableMapping[int, str] = {}
        self._strides: dict[tuple[int, int], str] = {}
        self._depth = 1

    def launch(self) -> tuple[Size, Size | None]:
        """Threads of the grid and of a threadgroup."""
        outer = self.axes.outer
        if self.flat:
            outer = (*outer[:-2], outer[-2] * outer[-1])
        inner, second = (outer[-1] if outer else 1), (outer[-2] if len(outer) > 1 else 1)
        return (inner, second, math.prod(outer[:-2])), None

    def write(self) -> None:
        """Write all statements."""
        self._positions()
        self._pointers()
        self._body()

    def _body(self) -> None:
        self._store_outputs(set())

    def _store_outputs(self, known: set[int]) -> None:
        """Compute and store all outputs at the current index."""
        self._compute([output.result for output in self.kernel.outputs], known)
        for k, output in enumerate(self.kernel.outputs):
            self._store(self._names[output.result], access=RESULT - k)

    def _line(self, text: str) -> None:
        self.lines.append(_INDENT * self._depth + text)

    def _member(self, name: str, type_: str, format_: str, value: int = 0, leaf: int | None = None,
                number: int = -1, component: str = "") -> str:  # fmt: skip
        name = self.prefix + name
        if any(member.name == name for member in self.members):
            return f"params.{name}"  # used by a loop and its remainder
        self.members.append(Member(name, type_, format_, value, leaf, number, component))
        return f"params.{name}"

    def parameters(self) -> list[int]:
        """The buffers, in the order of their parameters; those that are written are the last."""
        order = [e.data for e in self.ops if e.kind in ("load", "gather")]
        return [*dict.fromkeys(order), *self.written()]

    def written(self) -> list[int]:
        """The buffers that are written."""
        return list(dict.fromkeys(output.out for output in self.kernel.outputs))

    def _positions(self) -> None:
        """Declare the index along each outer axis."""
        outer = self.axes.outer
        self._indices: list[str] = [""] * len(outer)
        if self.axes.form == "row":
            names, first = ["at.y"], len(outer) - 1
        else:
            names, first = ["at.x", "at.y"], len(outer) - 1
        if (
            self.axes.form != "row"
            and len(outer) > 1
            and outer[-1] < (NARROW if self.axes.is_simt else self.narrow)
            and outer[-2] * outer[-1] <= _WIDE
        ):
            # A literal, so that the compiler turns the division into a multiplication.
            self.flat = outer[-1]
            self._line(f"const uint i0 = at.x % {self.flat}, i1 = at.x / {self.flat};")
            self._indices[-1], self._indices[-2] = "i0", "i1"
            names, first = ["at.y"], len(outer) - 3
        for name in names:
            if first >= 0:
                self._indices[first] = name
                first -= 1
        self._outermost_positions(first)

    def _outermost_positions(self, first: int) -> None:
        """Declare the indices along the axes up to `first`, which are merged in the grid."""
        if first == 0:
            self._indices[0] = "at.z"
        elif first > 0:
            self._line("uint rest = at.z;")
            for axis in range(first, 0, -1):
                extent = self._member(f"extent{axis}", "uint", "I", self.axes.outer[axis])
                self._line(f"const uint k{axis} = rest % {extent};")
                self._line(f"rest /= {extent};")
                self._indices[axis] = f"k{axis}"
            self._indices[0] = "rest"

    def _buffer_names(self) -> tuple[dict[int, str], dict[int, str]]:
        """The names of the parameters that are read, and of those that are written."""
        written = self.written()
        read = self.parameters()[: -len(written)]
        return (
            {source: f"x{k}" for k, source in enumerate(read)},
            {source: output_name(k) for k, source in enumerate(written)},
        )

    def _pointers(self) -> None:
        """Declare a pointer for each access, advanced along all outer axes but the innermost."""
        names, out_names = self._buffer_names()
        count = 0
        for index, access in self.axes.accesses.items():
            op = self.ops[index] if index >= 0 else None
            source, offset = self.kernel.accessed(index)
            leaf = self.sources[source].leaf
            label = f"p{count}" if op else "to" + str(RESULT - index or "")
            terms = []
            if leaf is not None or offset >= MAX_INTERLEAVED:
                terms.append(self._member(f"{label}_start", "long", "q", offset, leaf))
            elif offset:
                terms.append(str(offset))  # the compiler sees which accesses are adjacent
            flat_axis = len(self.axes.outer) - 2 if self._is_in_order(access) else -1
            for axis in self._pointer_axes():
                stride = access.outer[axis]
                if stride and axis != flat_axis:
                    step = self._step(f"{label}_k{axis}", stride)
                    terms.append(f"long({self._indices[axis]}) * {step}" if step else
                                 self._indices[axis])  # fmt: skip
            count += op is not None
            if op is not None and op.kind == "iota":
                access.pointer = self._iota(index, " + ".join(terms) or "0")
                continue
            type_ = msl_name(self.sources[source].dtype)
            const = "const " if op else ""
            base = names[source] if op else out_names[source]
            self._pointer(f"device {const}{type_} *{label}", " + ".join([base, *terms]))
            access.pointer = label

    def _pointer_axes(self) -> range:
        """The axes along which pointers are advanced."""
        return range(len(self.axes.outer) - self._index_axes())

    def _is_in_order(self, access: Access) -> bool:
        """Whether threads of a flattened axis access elements at one distance from each other.

        Their index is that of the thread then: vectors of adjacent elements instead of gathers.
        """
        if not self.flat or self._index_axes() != 1:
            return False
        second, inner = access.outer[-2:]
        return inner != 0 and second == self.flat * inner

    def _index_axes(self) -> int:
        return 0 if self.axes.form == "row" else min(self.index_axes, len(self.axes.outer))

    def _pointer(self, declaration: str, text: str) -> None:
        self._line(f"{declaration} = {text};")

    def _iota(self, index: int, text: str) -> str:
        """The start of an iota, as text that may be used repeatedly."""
        return f"({text})"

    def _step(self, name: str, stride: int) -> str:
        """The parameter of a stride; empty for 1."""
        return "" if stride == 1 else self._member(name, "long", "q", stride)

    def _index(self, index: int, row: Sequence[str]) -> str:
        """Index of an access relative to its pointer, at an index of the row."""
        access = self.axes.accesses[index]
        label = access.pointer if access.pointer[0] != "(" else f"c{index}"
        terms = []
        first = len(self.axes.outer) - self._index_axes()
        extents = [*self.axes.outer[first:], *self.axes.row]
        names = [*self._indices[first:], *row]
        if self._is_in_order(access):
            names[0] = "at.x"
        strides = [*access.outer[first:], *access.row]
        for k, (name, stride, extent) in enumerate(zip(names, strides, extents, strict=False)):
            if stride == 0:
                continue
            if stride == 1:
                terms.append(name)
                continue
            is_wide = abs(stride) * extent >= _WIDE or len(names) > 1
            type_, format_ = ("long", "q") if is_wide else ("int", "i")
            if (index, k) not in self._strides:
                self._strides[index, k] = (
                    str(stride)
                    if stride in self.literal_strides
                    else self._member(f"{label}_{k}", type_, format_, stride)
                )
            terms.append(f"{type_}({name}) * {self._strides[index, k]}")
        return " + ".join(terms) or "0"

    # -- values

    def _compute(self, required: list[int], known: set[int], row: Sequence[str] = ()) -> None:
        """Write the statements of operations and their operands, except those in `known`."""
        needed = self._needed(required, known)
        for index in sorted(needed):
            self._value(index, row)
        known |= needed

    def _needed(self, required: Iterable[int], known: set[int]) -> set[int]:
        """Operations and their transitive operands, not looking beyond those in `known`."""
        needed: set[int] = set()
        pending = [index for index in required if index not in known]
        while pending:
            index = pending.pop()
            if index not in needed:
                needed.add(index)
                pending += [arg for arg in self.ops[index].args if arg not in known]
        return needed

    def _name_of(self, index: int) -> str:
        """The name of the value of an operation."""
        return f"v{index}"

    def _value(self, index: int, row: Sequence[str]) -> None:
        op = self.ops[index]
        type_ = msl_name(op.dtype)
        name = self._names[index] = self._name_of(index)
        args = [self._names[arg] for arg in op.args]
        if op.kind == "constant":
            text = self._constant(index, op)
            self._line(f"const {type_} {name} = {text};")
            return
        if op.kind == "iota":
            pointer = self.axes.accesses[index].pointer
            text = f"long({pointer}) + long({self._index(index, row)})"
        elif op.kind == "load":
            text = f"{self.axes.accesses[index].pointer}[{self._index(index, row)}]"
        elif op.kind == "gather":
            steps = [  # products of long vectors take as long as a gather
                f"long({arg})"
                if step == 1
                else f"long({arg}) * " + self._member(f"g{index}_{k}", "long", "q", step)
                for k, (arg, step) in enumerate(zip(args, op.steps, strict=True))
            ]
            inner = self._index(index, row)
            text = f"{self.axes.accesses[index].pointer}[{' + '.join([*steps, inner])}]"
        elif self._is_counted_float(op):
            iota = op.args[0]
            start, at = self.axes.accesses[iota].pointer, self._index(iota, row)
            text = f"double(long({start})) + double(int({at}))"
        else:
            operand = self.ops[op.args[0]].dtype
            form = op.data.float_text if kind_of(operand) == "f" else ""
            text = (form or op.data.text).format(*args, T=type_)
            if kind_of(op.dtype) in "iu" and op.dtype.itemsize < 4 and " " in text:
                text = f"{type_}({text})"  # C++ computes short integers as int
        self._line(f"const {type_} {name} = {text};")

    def _is_counted_float(self, op: KernelOp) -> bool:
        """Whether a value is an index from a start on, as double.

        AVX2 has no instruction that converts 64-bit integers.
        """
        if op.data is not CAST or op.dtype != float64 or self.ops[op.args[0]].kind != "iota":
            return False
        access, axes = self.axes.accesses[op.args[0]], self.axes
        extents = [*axes.outer, *axes.row]
        return {*access.outer, *access.row} <= {0, 1} and sum(extents) < 2**31

    def _constant(self, index: int, op: KernelOp) -> str:
        type_ = msl_name(op.dtype)
        if op.dtype in (complex64, complex128):
            scalar = "double" if op.dtype == complex128 else "float"
            form = "d" if op.dtype == complex128 else "f"
            real, imag = (
                self._member(f"n{index}_{of}", scalar, form, number=op.data, component=of)
                for of in ("real", "imag")
            )
            return f"{type_}({real}, {imag})"
        form, msl = _NUMBER_FORMATS[kind_of(op.dtype)]
        if op.dtype == float64:
            form, msl = "d", "double"
        given = self._member(f"n{index}", msl, form, number=op.data)
        return given if msl == type_ else f"{type_}({given})"

    def _store(self, name: str, row: Sequence[str] = (), access: int = RESULT) -> None:
        pointer = self.axes.accesses[access].pointer
        self._line(f"{pointer}[{self._index(access, row)}] = {name};")
