"""The Metal text of a kernel, and the parameters that each launch passes.

The text depends on structure only: extents, strides and the constants of an expression are members
of ``struct Params``, so arrays of other shapes share the compiled kernel.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from metalloid.arrays.codegen.column_groups import (
    ColumnGroupWriter,
    InterleavedRowWriter,
    columns_per_lane,
    has_interleaved_rows,
)
from metalloid.arrays.codegen.elementwise import Writer, output_name
from metalloid.arrays.codegen.gpu_column_reduction import WideColumnWriter, has_wide_columns
from metalloid.arrays.codegen.gpu_elementwise import WideWriter
from metalloid.arrays.codegen.gpu_row_groups import WideRowGroupWriter, is_row_group
from metalloid.arrays.codegen.gpu_row_reduction import LONG, WideRowWriter
from metalloid.arrays.codegen.horizontal import HorizontalWriter
from metalloid.arrays.codegen.matmul import ProductWriter
from metalloid.arrays.codegen.matmul_forms import form_of
from metalloid.arrays.codegen.narrow_rows import NarrowRowWriter, is_narrow
from metalloid.arrays.codegen.params import Member
from metalloid.arrays.codegen.reduction import RowWriter
from metalloid.arrays.codegen.row_groups import RowGroupWriter, is_grouped
from metalloid.arrays.codegen.short_rows import ShortRowWriter, is_short
from metalloid.arrays.codegen.vectorization import leaves_of, packed_accesses
from metalloid.arrays.ir.dtypes import complex64, complex128, float64, msl_name
from metalloid.arrays.ir.ops import MODULES
from metalloid.arrays.planning.kernel_op import KernelOp
from metalloid.arrays.planning.loop_axes import NARROW, RESULT, Axes
from metalloid.arrays.planning.product_tiles import has_few_registers
from metalloid.arrays.planning.schedule import (
    BufferSpec,
    FusedKernel,
    GeneratedKernel,
    HorizontalKernel,
    LibraryKernel,
    ProductKernel,
)
from metalloid.runtime.devices.traits import DeviceTraits

_IN_LINE = ("uint position [[thread_position_in_grid]]",)
_IN_GRID = ("uint3 at [[thread_position_in_grid]]",)
_IN_GROUPS = (
    "uint3 group [[threadgroup_position_in_grid]]",
    "ushort simdgroup [[simdgroup_index_in_threadgroup]]",
    "ushort lane [[thread_index_in_simdgroup]]",
)
_IN_TILES = (
    "uint3 group [[threadgroup_position_in_grid]]",
    "uint simdgroup [[simdgroup_index_in_threadgroup]]",
    "uint lane [[thread_index_in_simdgroup]]",
)


_IN_PANELS = (_IN_TILES[0], "uint3 thread_ [[thread_position_in_threadgroup]]")


@dataclass
class Rendered:
    """A kernel's text and launch parameters.

    Attributes
    ----------
    name, text : str
    buffers : list of int
        Buffers, in the order of the parameters; those that are written are the last.
    written : int
        Number of buffers that are written.
    members : list of Member
    threads : tuple of int
    group_size : tuple of int or None
    files : tuple of str
        Names of the Metal sources that the text calls.
    aligned : tuple of (int, int)
        Buffers of leaves, and the alignment in bytes that the text relies on.
    """

    name: str
    text: str
    buffers: list[int]
    members: list[Member]
    threads: tuple[int, int, int]
    group_size: tuple[int, int, int] | None
    files: tuple[str, ...]
    aligned: tuple[tuple[int, int], ...] = ()
    written: int = 1


def render(kernel: GeneratedKernel, sources: Sequence[BufferSpec], traits: DeviceTraits,
           is_aligned: bool = True) -> Rendered:  # fmt: skip
    """Generate the text of a kernel.

    Parameters
    ----------
    traits : DeviceTraits
        Traits of the device that runs it.
    is_aligned : bool
        Whether leaves are aligned as `Rendered.aligned` says.
    """
    if isinstance(kernel, LibraryKernel):
        return _render_library_kernel(kernel, sources, is_aligned)
    if isinstance(kernel, HorizontalKernel):
        return _render_horizontal(kernel, sources)
    if isinstance(kernel, ProductKernel):
        return _render_product(kernel, sources, traits, is_aligned)
    axes = Axes(kernel, traits.is_simt)
    packed: frozenset[int] = frozenset()
    if traits.is_simt and is_aligned:
        packed = packed_accesses(kernel, sources, axes)
    writer = _writer(kernel, sources, axes, packed, traits)
    writer.write()
    name = _name(kernel.ops)
    buffers = writer.parameters()
    members = _by_size(writer.members)
    types, written = [msl_name(sources[source].dtype) for source in buffers], len(writer.written())
    head = _head(name, types, members, written=written)
    text = head + "\n".join(writer.lines) + "\n}\n"
    files = _files(kernel.ops, axes.form)
    if isinstance(writer, WideWriter | WideRowWriter | WideColumnWriter):
        files += ("wide",)
    return Rendered(name, text, buffers, members, *writer.launch(), files,
                    leaves_of(packed, kernel, sources), written)  # fmt: skip


def _writer(kernel: FusedKernel, sources: Sequence[BufferSpec], axes: Axes, packed: frozenset[int],
            traits: DeviceTraits) -> Writer:  # fmt: skip
    if axes.form == "elementwise":
        if RESULT in packed and axes.outer[-1] >= NARROW:
            return WideWriter(kernel, sources, axes, packed)
        if not traits.is_simt and is_narrow(kernel, axes):
            return NarrowRowWriter(kernel, sources, axes)
        return Writer(kernel, sources, axes)
    if is_row_group(axes, packed):
        return WideRowGroupWriter(kernel, sources, axes, packed)
    is_long = len(axes.row) == 1 or axes.row[-1] >= LONG
    if traits.is_simt and axes.form == "row" and is_long:
        return WideRowWriter(kernel, sources, axes, packed)
    if has_wide_columns(kernel, axes, packed):
        return WideColumnWriter(kernel, sources, axes, packed)
    if is_short(kernel, axes):
        return ShortRowWriter(kernel, sources, axes)
    if has_interleaved_rows(kernel, axes):
        return InterleavedRowWriter(kernel, sources, axes)
    if columns_per_lane(kernel, axes) > 1:
        return ColumnGroupWriter(kernel, sources, axes)
    if not traits.is_simt and is_grouped(kernel, axes):
        return RowGroupWriter(kernel, sources, axes)
    writer = RowWriter(kernel, sources, axes)
    if has_few_registers(traits):
        writer.accumulators //= 2
    return writer


def _render_product(kernel: ProductKernel, sources: Sequence[BufferSpec], traits: DeviceTraits,
                    is_aligned: bool) -> Rendered:  # fmt: skip
    writer = ProductWriter(kernel, sources, form_of(kernel, traits), is_aligned)
    writer.write()
    members = _by_size(writer.members)
    name = _name(kernel.ops)
    types = [msl_name(sources[source].dtype) for source in writer.buffers]
    positions = _IN_PANELS if writer.form.name in ("panels", "strips") else _IN_TILES
    max_threads = writer.form.threads if writer.form.name == "dots" else None
    head = _head(name, types, members, positions, writer.structs, max_threads=max_threads)
    groups = (kernel.ops, *(factor.ops for factor in kernel.factors))
    files = _files([op for ops in groups for op in ops], "elementwise")
    files += ("products/products", *writer.form.files)
    return Rendered(name, head + "\n".join(writer.lines) + "\n}\n", writer.buffers, members,
                    *writer.launch(), files, writer.aligned)  # fmt: skip


def _render_library_kernel(kernel: LibraryKernel, sources: Sequence[BufferSpec],
                           is_aligned: bool) -> Rendered:  # fmt: skip
    launch = kernel.launch
    starts = [
        Member(f"start{k}", "long", "q", offset, sources[source].leaf)
        for k, (source, offset) in enumerate(kernel.reads)
    ]
    members = [*starts, *(Member(name, "uint", "I", value) for name, value in launch.numbers)]
    buffers = [*(source for source, _ in kernel.reads), *kernel.writes]
    types = [msl_name(sources[source].dtype) for source in buffers]
    positions: Sequence[str] = _IN_GRID
    if launch.group_size:
        positions = _IN_GROUPS if launch.uses_lanes else _IN_PANELS
    head = _head(launch.name, types, members, positions, written=len(kernel.writes),
                 constants=launch.constants, max_threads=launch.max_threads)  # fmt: skip
    lines = [f"  x{k} += params.start{k};" for k in range(len(kernel.reads))]
    aligned: tuple[tuple[int, int], ...] = ()
    if each := launch.aligned_to:
        aligned = tuple(
            (source, each * sources[source].dtype.itemsize)
            for source, _ in kernel.reads
            if sources[source].leaf is not None and is_aligned
        )
        is_aligned &= all(offset % each == 0 for source, offset in kernel.reads
                          if sources[source].leaf is None)  # fmt: skip
        lines.append(f"  constexpr bool is_aligned = {str(is_aligned).lower()};")
    lines += [f"  {line}" for line in launch.body.splitlines()]
    text = head + "\n".join(lines) + "\n}\n"
    files = ("arrays", *launch.files)
    return Rendered(launch.name, text, buffers, members, launch.threads, launch.group_size, files,
                    aligned, len(kernel.writes))  # fmt: skip


def _render_horizontal(kernel: HorizontalKernel, sources: Sequence[BufferSpec]) -> Rendered:
    writer = HorizontalWriter(kernel, sources)
    writer.write()
    ops = [op for each in kernel.kernels for op in each.ops]
    name, buffers, written = _name(ops), writer.parameters(), len(writer.written())
    types = [msl_name(sources[source].dtype) for source in buffers]
    members = _by_size(writer.members)
    head = _head(name, types, members, _IN_LINE, written=written)
    return Rendered(name, head + "\n".join(writer.lines) + "\n}\n", buffers, members,
                    (writer.threads, 1, 1), None, _files(ops, "elementwise"),
                    written=written)  # fmt: skip


def _by_size(members: Sequence[Member]) -> list[Member]:
    """Members by decreasing size, so that the struct has no padding."""
    return sorted(members, key=lambda member: -struct.calcsize(member.format))


def _name(ops: Sequence[KernelOp]) -> str:
    """The name of a kernel: its last few operations."""
    words = [
        op.data if isinstance(op.data, str) else op.data.name
        for op in ops
        if op.kind in ("elementwise", "reduce", "matmul")
    ]
    return "_".join(["array", *dict.fromkeys(words[-4:])])


def _head(name: str, types: Sequence[str], members: Sequence[Member],
          positions: Sequence[str] = _IN_GRID, structs: Sequence[str] = (),
          written: int = 1, constants: Sequence[int] = (),
          max_threads: int | None = None) -> str:  # fmt: skip
    """The struct of parameters, and the signature."""
    read = len(types) - written
    parameters = [
        f"{'constant' if k in constants else 'device const'} {type_} *x{k} [[buffer({k})]]"
        if k < read
        else f"device {type_} *{output_name(k - read)} [[buffer({k})]]"
        for k, type_ in enumerate(types)
    ]
    given = ""
    if members:
        parameters.append(f"constant Params &params [[buffer({len(types)})]]")
        rows = "".join(f"  {member.type} {member.name};\n" for member in members)
        given = f"struct Params {{\n{rows}}};\n\n"
    parameters += positions
    given += "".join(f"{line}\n" for line in structs)
    limit = f"[[max_total_threads_per_threadgroup({max_threads})]]\n" if max_threads else ""
    return f"{given}{limit}kernel void {name}(\n    " + ",\n    ".join(parameters) + ")\n{\n"


def _files(ops: Sequence[KernelOp], form: str) -> tuple[str, ...]:
    """Names of the Metal sources that a text needs, in their order."""
    types = {op.dtype["value"] if op.dtype.names else op.dtype for op in ops}
    files: list[str] = []
    if types & {float64, complex128}:
        files += _files_of_doubles(ops, complex128 in types)
    files.append("arrays")
    if form == "row":
        files.append("reductions")
    if types & {complex64, complex128}:
        files += ["complex", "complex_functions"]
    if any(op.dtype.names for op in ops):
        files.append("value_index")
    required = (name for op in ops if op.kind == "elementwise" for name in op.data.file.split())
    return tuple(dict.fromkeys([*files, *required]))


def _files_of_doubles(ops: Sequence[KernelOp], is_complex: bool) -> list[str]:
    """The modules of 64-bit floats; complex functions may use any of them."""
    used = {module for op in ops if op.kind == "elementwise" for module in op.data.doubles}
    modules = [name for name in MODULES if is_complex or name in used]
    return ["doubles/arithmetic", *(f"doubles/{name}" for name in modules)]
