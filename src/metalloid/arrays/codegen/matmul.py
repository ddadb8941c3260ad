"""Metal text of matrix products: prologues of both factors, and the epilogue.

The loops are templates in ``metal/products``. The kernel passes three structs whose methods read an
element of a factor or store a sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from metalloid.arrays.codegen.elementwise import Writer
from metalloid.arrays.codegen.gpu_elementwise import UNROLLED
from metalloid.arrays.codegen.matmul_forms import READS, Form, is_column_major
from metalloid.arrays.codegen.vectorization import leaves_of, packed_factor
from metalloid.arrays.ir.dtypes import DType, bfloat16, kind_of, msl_name, uint32
from metalloid.arrays.ir.layout import MAX_COLLAPSED_EXTENT, Ints
from metalloid.arrays.planning.loop_axes import RESULT, VECTOR_WIDTH, Access, Axes
from metalloid.arrays.planning.matmul_dispatch import FLOATS
from metalloid.arrays.planning.schedule import BufferSpec, Factor, FusedKernel, ProductKernel
from metalloid.kernels.strides import collapse
from metalloid.runtime.launch.program import Size

#: Numbers of a launch are 32-bit.
_MAX_NUMBER = 2**32
#: Bytes per asynchronous copy to threadgroup memory.
_COPIED_BYTES = 16
_COORDINATES = ("row", "column")


def _element_coordinates(is_down: bool) -> tuple[str, str]:
    """Row and column of one of several adjacent elements."""
    return ("at", "column") if is_down else ("row", "at")


class _TileAxes(Axes):
    """Axes of a functor: those of the batch, merged for all functors, and rows and columns."""

    def __init__(self, batch: Ints, accesses: dict[int, Access]) -> None:
        self.outer, self.row, self.form = batch, (1, 1), "row"
        self.accesses = accesses


class _FunctorWriter(Writer):
    """Writes a functor, the prologue of a factor or the epilogue: pointers, and a method."""

    literal_strides = ()  # one text serves all extents of the matrices

    def __init__(self, kernel: FusedKernel, sources: Sequence[BufferSpec], axes: Axes, prefix: str,
                 buffers: list[int], copies_params: bool) -> None:  # fmt: skip
        super().__init__(kernel, sources, axes)
        self.prefix, self._buffers = prefix, buffers
        numbers = "Params params" if copies_params else "constant Params &params"
        self._fields: list[tuple[str, str]] = [(numbers, "params")]
        self._indices = [f"k{axis}" for axis in range(len(axes.outer))]
        self._loaded: dict[int, str] = {}

    def parameters(self) -> list[int]:
        return self._buffers

    def _pointer(self, declaration: str, text: str) -> None:
        self._fields.append((declaration, text))

    def _iota(self, index: int, text: str) -> str:
        self._fields.append((f"long c{index}", text))
        return f"c{index}"

    def _value(self, index: int, row: Sequence[str]) -> None:
        op = self.ops[index]
        type_ = msl_name(op.dtype)
        value = self._loaded.get(index, f"{type_}(sum)" if op.kind == "matmul" else "")
        if op.kind == "load" and op.dtype == uint32 and self.sources[op.data].dtype == bfloat16:
            # The pairs of adjacent threads are adjacent words: their index is not multiplied by 2.
            start, number = list(_COORDINATES), _COORDINATES[self.prefix == "left_"]
            start[start.index(number)] = "0"
            pointer = self.axes.accesses[index].pointer
            value = f"numpy::read_pair({pointer} + {self._index(index, start)}, {number})"
        if not value:
            super()._value(index, row)
            return
        self._names[index] = f"v{index}"
        self._line(f"const {type_} v{index} = {value};")

    def four(self, packed: frozenset[int], type_: str, is_down: bool) -> list[str]:
        """The method for four adjacent elements of a factor."""
        self.lines, self._depth = [], 2
        for load in sorted(packed):
            value = f"numpy::read_four({self._address(load)})"
            self._line(f"const numpy::four<{self._type(load)}> q{load} = {value};")
        self._begin_loop(packed, "q{}[e]", f"{'row' if is_down else 'column'} + e")
        self._compute([self.kernel.result], set(), _element_coordinates(is_down))
        self._line(f"to[e] = {type_}({self._names[self.kernel.result]});")
        head = f"  METAL_FUNC void four(uint row, uint column, thread {type_} *to) const {{"
        return [head, *self.lines, "    }", "  }"]

    def fetch_and_make(self, packed: frozenset[int], type_: str, is_down: bool,
                       has_fours: bool) -> list[str]:  # fmt: skip
        """The methods that load the operands of four elements, and that compute the elements.

        Parameters
        ----------
        has_fours : bool
            Whether each group of four lies in the factor as a whole or not at all.
        """
        loads = [k for k, op in enumerate(self.ops) if op.kind == "load"]
        fields = [f"    numpy::four<{self._type(load)}> q{load};" for load in loads]
        at = f"{'row' if is_down else 'column'} + min(uint(e), last)"
        self.lines, self._depth = ["    Fetched to;"], 2
        for load in sorted(packed):
            self._line(f"to.q{load} = numpy::read_four({self._address(load)});")
        for load in sorted(set(loads) - packed):
            pointer, index = (
                self.axes.accesses[load].pointer,
                self._index(load, _element_coordinates(is_down)),
            )
            self._begin_loop((), "", at)
            self._line(f"to.q{load}[e] = {pointer}[{index}];")
            self._depth -= 1
            self._line("}")
        fetch = [*self.lines, "    return to;", "  }"]
        self.lines, self._depth = [], 2
        self._begin_loop(loads, "from.q{}[e]", at)
        self._compute([self.kernel.result], set(), _element_coordinates(is_down))
        self._line(f"to[e] = {type_}({self._names[self.kernel.result]});")
        location = "uint row, uint column, uint last"
        return [
            f"  static constexpr constant bool has_fours = {'true' if has_fours else 'false'};",
            "  struct Fetched {", *fields, "  };",
            f"  METAL_FUNC Fetched fetch({location}) const {{", *fetch,
            f"  METAL_FUNC void make(Fetched from, {location}, thread {type_} *to) const {{",
            *self.lines, "    }", "  }",
        ]  # fmt: skip

    def four_sums(self, packed: frozenset[int], sum_type: str) -> list[str]:
        """The method that stores four adjacent sums."""
        result = self.kernel.result
        self.lines, self._depth = [], 2
        for load in sorted(packed - {RESULT}):
            value = f"numpy::read_four({self._address(load)})"
            self._line(f"const numpy::four<{self._type(load)}> q{load} = {value};")
        if RESULT in packed:
            self._line(f"numpy::four<{self._type(result)}> results;")
        self._begin_loop(packed - {RESULT}, "q{}[e]", "column + e")
        self._line(f"const {sum_type} sum = sums[e];")
        self._compute([result], set(), _element_coordinates(False))
        if RESULT in packed:
            self._line(f"results[e] = {self._names[result]};")
            self.lines += ["    }", f"    numpy::write_four({self._address(RESULT)}, results);"]
        else:
            self._store(self._names[result], _element_coordinates(False))
            self.lines.append("    }")
        head = "  METAL_FUNC void four(uint row, uint column, const thread"
        return [f"{head} {sum_type} (&sums)[4]) const {{", *self.lines, "  }"]

    def _begin_loop(self, known: Iterable[int], name: str, at: str) -> None:
        """Open a loop over four elements; loads in `known` are available by name."""
        self._loaded = {load: name.format(load) for load in known}
        self._line(UNROLLED)
        self._line(f"for (ushort e = 0; e < {VECTOR_WIDTH}; ++e) {{")
        self._depth += 1
        self._line(f"const uint at = {at};")

    def _address(self, access: int) -> str:
        return f"{self.axes.accesses[access].pointer} + {self._index(access, _COORDINATES)}"

    def _type(self, index: int) -> str:
        return msl_name(self.ops[index].dtype)

    def at(self, type_: str, is_direct: bool) -> list[str]:
        """The method for the address of an element, if the factor is read directly."""
        at = self._address(self.kernel.result) if is_direct else "nullptr"
        return [
            f"  METAL_FUNC device const {type_} *at(uint row, uint column) const {{",
            f"    return {at};",
            "  }",
        ]

    def address(self) -> list[str]:
        """The method for the address of an element, to fetch others ahead; or 0."""
        is_load = self.ops[self.kernel.result].kind == "load"
        at = f"(device const char *)({self._address(self.kernel.result)})" if is_load else "nullptr"
        return [
            "  METAL_FUNC device const char *address(uint row, uint column) const {",
            f"    return {at};",
            "  }",
        ]

    def next(self, space: Ints, rows: int) -> list[str]:
        """The method for the address of what is multiplied next, or 0.

        It is the next matrix of a dense stack, or the next `rows` of a dense matrix.
        """
        access = self.axes.accesses.get(self.kernel.result)
        at, step = "nullptr", 0
        if access is not None and access.outer == (math.prod(space[-2:]),):
            step = access.outer[0]
        elif access is not None and not access.outer and access.row == (space[-1], 1):
            step = rows * space[-1]
        if access is not None and 0 < step < _MAX_NUMBER:
            size = self._member("next", "uint", "I", step)
            at = f"(device const char *)({access.pointer} + {size})"
        return ["  METAL_FUNC device const char *next() const {", f"    return {at};", "  }"]

    def struct(self, name: str, sum_type: str) -> list[str]:
        """The lines of the struct, without the closing brace."""
        self._pointers()
        self._depth = 2
        result = self.kernel.result
        self._compute([result], set(), _COORDINATES)
        parameters = "uint row, uint column"
        if RESULT in self.axes.accesses:
            self._store(self._names[result], _COORDINATES)
            parameters += f", {sum_type} sum"
            type_ = "void"
        else:
            self._line(f"return {self._names[result]};")
            type_ = msl_name(self.ops[result].dtype)
        fields = [f"  {declaration};" for declaration, _ in self._fields]
        head = f"  METAL_FUNC {type_} operator()({parameters}) const {{"
        return [f"struct {name} {{", *fields, "", head, *self.lines, "  }"]

    def constructor(self, name: str) -> str:
        """The statement that constructs the struct."""
        values = ", ".join(text for _, text in self._fields)
        return f"  const {name} {name.lower()}{{{values}}};"


def sum_type(dtype: DType) -> str:
    """Type of the accumulators in MSL."""
    if kind_of(dtype) in "iu":  # overflow of signed integers is undefined in C++
        return "uint" if dtype.itemsize <= 4 else "ulong"
    return "float" if dtype in FLOATS else msl_name(dtype)


class ProductWriter:
    """Writes the kernel of a matrix product.

    Attributes
    ----------
    structs, lines : list of str
        Declarations before the kernel, and its statements.
    members : list of Member
    buffers : list of int
        Buffers, in the order of the parameters.
    shape : tuple of int
        Rows, columns and depth.
    batch : tuple of int
        Extents.
    """

    def __init__(self, kernel: ProductKernel, sources: Sequence[BufferSpec], form: Form,
                 is_aligned: bool) -> None:  # fmt: skip
        self.kernel, self.sources, self.form = kernel, sources, form
        self.is_aligned = is_aligned
        self.functors = [*(_as_kernel(factor) for factor in kernel.factors), kernel]
        reads = [e.data for functor in self.functors for e in functor.ops if e.kind in READS]
        self.buffers = [*dict.fromkeys(reads), kernel.out]
        self.shape = (*kernel.iteration_space[-2:], kernel.factors[0].iteration_space[-1])
        accesses = {
            (k, index): strides
            for k, functor in enumerate(self.functors)
            for index, strides in _strides_of(functor).items()
        }
        batch, batch_strides = collapse(
            kernel.iteration_space[:-2],
            *(strides[:-2] for strides in accesses.values()),
            max_extent=MAX_COLLAPSED_EXTENT,
        )
        by_functor: list[dict[int, Access]] = [{}, {}, {}]
        for (k, index), outer in zip(accesses, batch_strides, strict=True):
            by_functor[k][index] = Access("", outer, accesses[k, index][-2:])
        if len(batch) == 1 and _is_one_matrix(self.shape[0], by_functor):
            rows = self.shape[0]
            self.shape = (batch[0] * rows, *self.shape[1:])
            for access in [access for each in by_functor for access in each.values()]:
                if rows == 1 and access.outer != (0,):
                    access.row = (access.outer[0], access.row[1])
                access.outer = ()
            batch = ()
        self.batch = batch
        self.aligned: tuple[tuple[int, int], ...] = ()
        copies_params = form.has_fours  # a copy stays in registers across barriers
        self.writers = [
            _FunctorWriter(
                functor, sources, _TileAxes(batch, each), prefix, self.buffers, copies_params
            )
            for functor, each, prefix in zip(
                self.functors, by_functor, ("left_", "right_", ""), strict=True
            )
        ]

    def write(self) -> None:
        """Write all lines."""
        root, form = self.writers[-1], self.form
        dtype = self.kernel.product_dtype
        added = sum_type(dtype)
        if self.form.name == "panels" and kind_of(dtype) in "iu" and dtype.itemsize <= 2:
            added = "ushort"  # which wraps around as results do
        of_tensors = form.name == "tensors"
        type_ = msl_name(self.kernel.factors[0].dtype) if of_tensors else added
        has_pairs = dtype == bfloat16 and self.kernel.factors[0].dtype == uint32
        element = "uint" if has_pairs else type_
        names = ("Left", "Right", "Store")
        downs = [is_column_major(factor) for factor in self.kernel.factors]
        self.structs, copied = [], []
        for k, (writer, name) in enumerate(zip(self.writers, names, strict=True)):
            self.structs += writer.struct(name, added)
            if of_tensors and name == "Store":
                self.structs += writer.four_sums(self._packed(k, False), added)
            elif of_tensors:
                copied.append(self._is_copied(k, downs[k]))
                has_fours = self._length(k) % VECTOR_WIDTH == 0
                packed = self._packed(k, downs[k]) if has_fours else frozenset[int]()
                self.structs += writer.fetch_and_make(packed, type_, downs[k], has_fours)
                self.structs += writer.at(type_, copied[k])
            elif form.name == "panels" and name != "Store":
                self.structs += writer.at(element, self.kernel.factors[k].is_packed)
                # Few columns: memory is the limit, and no other threadgroup reads the rows.
                is_streamed = name == "Left" and self.shape[1] <= form.columns
                rows = form.rows if is_streamed else 0
                self.structs += writer.next(self.kernel.factors[k].iteration_space, rows)
            elif form.name == "dots" and name == "Right":
                self.structs += writer.address()
            elif form.has_fours and name != "Store":
                self.structs += writer.four(self._packed(k, downs[k]), type_, downs[k])
            self.structs += ["};", ""]
        given = [
            type_,
            *([element] if form.name in ("panels", "dots") else []),
            *filter(None, [form.each]),
        ]
        are_packed = [factor.is_packed for factor in self.kernel.factors]
        flags = {"panels": are_packed, "strips": [], "dots": []}.get(form.name, downs)
        given += ["true" if is_so else "false" for is_so in (*flags, *copied)]
        self.lines = []
        if form.capacity:
            capacity = form.capacity.format(T=type_)
            self.lines.append(f"  threadgroup {type_} tiles[numpy::{capacity}];")
        self._batch()
        self.lines += [w.constructor(name) for w, name in zip(self.writers, names, strict=True)]
        thread = "simdgroup * 32 + lane" if form.has_fours else "simdgroup, lane"
        thread = {"panels": "thread_.x", "strips": "thread_.x", "dots": "lane"}.get(
            form.name, thread
        )
        size = ", ".join(
            root._member(name, "uint", "I", extent)
            for name, extent in zip(("rows", "columns", "depth"), self.shape, strict=True)
        )
        self.lines += [
            f"  numpy::multiply_in_{form.name}<{', '.join(given)}>(",
            f"      {'tiles, ' if form.capacity else ''}left, right, store, uint3({size}),",
            f"      group, {thread});",
        ]
        self.members = [member for writer in self.writers for member in writer.members]

    def _packed(self, k: int, is_down: bool, each: int = VECTOR_WIDTH) -> frozenset[int]:
        """The vector accesses of a functor, of `each` elements."""
        kernel, packed = self.writers[k].kernel, frozenset[int]()
        if self.is_aligned:
            packed = packed_factor(kernel, self.sources, self.writers[k].axes, is_down, each)
        self.aligned += leaves_of(packed, kernel, self.sources, each)
        return packed

    def _is_copied(self, k: int, is_down: bool) -> bool:
        """Whether a factor is copied to threadgroup memory as it is, by 16 bytes."""
        op = self.functors[k].ops[self.functors[k].result]
        each = _COPIED_BYTES // op.dtype.itemsize
        if op.kind != "load" or self._length(k) % each:
            return False
        return bool(self._packed(k, is_down, each))

    def _length(self, k: int) -> int:
        """Extent of a factor along its contiguous axis."""
        is_down = is_column_major(self.kernel.factors[k])
        return self.shape[1 if k else 0] if is_down == (k == 0) else self.shape[2]

    def launch(self) -> tuple[Size, Size]:
        """Threads of the grid and of a threadgroup."""
        rows, columns, _ = self.shape
        across, down = -(-columns // self.form.columns), -(-rows // self.form.rows)
        threads = self.form.threads
        return (across * threads, down, math.prod(self.batch)), (threads, 1, 1)

    def _batch(self) -> None:
        """Declare the index along each axis of the batch."""
        root = self.writers[-1]
        rest = "group.z"
        for axis in range(len(self.batch) - 1, 0, -1):
            extent = root._member(f"extent{axis}", "uint", "I", self.batch[axis])
            self.lines.append(f"  const uint k{axis} = {rest} % {extent};")
            rest = f"{rest} / {extent}"
        if self.batch:
            self.lines.append(f"  const uint k0 = {rest};")


def _as_kernel(factor: Factor) -> FusedKernel:
    return FusedKernel(factor.iteration_space, (), factor.ops, factor.result, -1, ())


def _strides_of(functor: FusedKernel) -> dict[int, Ints]:
    """Strides of each operation that reads, and of the output if the functor stores it."""
    read = {index: op.strides for index, op in enumerate(functor.ops) if op.is_read}
    return {**read, RESULT: functor.strides} if functor.out >= 0 else read


def _is_one_matrix(rows: int, accesses: Sequence[dict[int, Access]]) -> bool:
    """Whether a batch is one matrix with more rows: all share the right factor."""
    left, right, result = (list(each.values()) for each in accesses)
    if any(access.outer != (0,) for access in right):
        return False
    return rows == 1 or all(a.outer == (a.row[0] * rows,) for a in left + result)
