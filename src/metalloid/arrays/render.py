"""From a fused kernel to its MSL text, and to the numbers that go with it.

The text depends on structure only: extents, strides and the numbers of an expression are members of
``struct Numbers``, so that arrays of other shapes find the kernel compiled.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from metalloid.arrays.access import RESULT, Axes
from metalloid.arrays.bundles import leaves_of, packed_accesses
from metalloid.arrays.numbers import Member
from metalloid.arrays.ops import CHAPTERS
from metalloid.arrays.product_text import ProductWriter, form_of
from metalloid.arrays.row_text import RowWriter
from metalloid.arrays.steps import FusedKernel, ProductKernel, Source
from metalloid.arrays.text import NARROW, Writer
from metalloid.arrays.trace import Entry
from metalloid.arrays.types import complex64, complex128, float64, msl_name
from metalloid.arrays.wide_column_text import WideColumnWriter, has_wide_columns
from metalloid.arrays.wide_row_text import LONG, WideRowWriter
from metalloid.arrays.wide_text import WideWriter
from metalloid.runtime.traits import Traits

_IN_GRID = ("uint3 at [[thread_position_in_grid]]",)
_IN_TILES = (
    "uint3 group [[threadgroup_position_in_grid]]",
    "uint simdgroup [[simdgroup_index_in_threadgroup]]",
    "uint lane [[thread_index_in_simdgroup]]",
)


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
    aligned : tuple of (int, int)
        Sources of leaves that have to begin at a multiple of so many bytes.
    """

    name: str
    text: str
    buffers: list[int]
    members: list[Member]
    threads: tuple[int, int, int]
    group_size: tuple[int, int, int] | None
    files: tuple[str, ...]
    aligned: tuple[tuple[int, int], ...] = ()


def render(kernel: FusedKernel, sources: Sequence[Source], traits: Traits,
           is_aligned: bool = True) -> Rendered:  # fmt: skip
    """The text of a kernel.

    Parameters
    ----------
    traits : Traits
        Of the device that runs it.
    is_aligned : bool
        Whether leaves lie where `Rendered.aligned` wants them.
    """
    if isinstance(kernel, ProductKernel):
        return _render_product(kernel, sources, traits, is_aligned)
    axes = Axes(kernel)
    packed: frozenset[int] = frozenset()
    if traits.has_thin_threads and is_aligned:
        packed = packed_accesses(kernel, sources, axes)
    writer = _writer(kernel, sources, axes, packed, traits)
    writer.write()
    name = _name(kernel.entries)
    buffers = writer.parameters()
    members = _by_size(writer.members)
    head = _head(name, [msl_name(sources[source].dtype) for source in buffers], members)
    text = head + "\n".join(writer.lines) + "\n}\n"
    files = _files(kernel.entries, axes.form)
    if isinstance(writer, WideWriter | WideRowWriter | WideColumnWriter):
        files += ("wide.metal",)
    return Rendered(name, text, buffers, members, *writer.launch(), files,
                    leaves_of(packed, kernel, sources))  # fmt: skip


def _writer(kernel: FusedKernel, sources: Sequence[Source], axes: Axes, packed: frozenset[int],
            traits: Traits) -> Writer:  # fmt: skip
    if axes.form == "map":
        if RESULT in packed and axes.kept[-1] >= NARROW:
            return WideWriter(kernel, sources, axes, packed)
        return Writer(kernel, sources, axes)
    is_long = len(axes.row) == 1 or axes.row[-1] >= LONG
    if traits.has_thin_threads and axes.form == "row" and is_long:
        return WideRowWriter(kernel, sources, axes, packed)
    if has_wide_columns(kernel, axes, packed):
        return WideColumnWriter(kernel, sources, axes, packed)
    return RowWriter(kernel, sources, axes)


def _render_product(kernel: ProductKernel, sources: Sequence[Source], traits: Traits,
                    is_aligned: bool) -> Rendered:  # fmt: skip
    writer = ProductWriter(kernel, sources, form_of(kernel, traits), is_aligned)
    writer.write()
    members = _by_size(writer.members)
    name = _name(kernel.entries)
    types = [msl_name(sources[source].dtype) for source in writer.buffers]
    head = _head(name, types, members, _IN_TILES, writer.structs)
    parts = (kernel.entries, *(factor.entries for factor in kernel.factors))
    files = _files([entry for entries in parts for entry in entries], "map")
    files += ("products.metal", *writer.form.files)
    return Rendered(name, head + "\n".join(writer.lines) + "\n}\n", writer.buffers, members,
                    *writer.launch(), files, writer.aligned)  # fmt: skip


def _by_size(members: Sequence[Member]) -> list[Member]:
    """The largest first, so that a struct has no gaps."""
    return sorted(members, key=lambda member: -struct.calcsize(member.format))


def _name(entries: Sequence[Entry]) -> str:
    """What a kernel is called: its last few operations."""
    words = [
        entry.data if isinstance(entry.data, str) else entry.data.name
        for entry in entries
        if entry.kind in ("map", "reduce", "product")
    ]
    return "_".join(["array", *dict.fromkeys(words[-4:])])


def _head(name: str, types: Sequence[str], members: Sequence[Member],
          positions: Sequence[str] = _IN_GRID, structs: Sequence[str] = ()) -> str:  # fmt: skip
    """The text up to the first statement."""
    last = len(types) - 1
    parameters = [
        f"device const {type_} *x{k} [[buffer({k})]]" for k, type_ in enumerate(types[:-1])
    ]
    parameters.append(f"device {types[-1]} *out [[buffer({last})]]")
    given = ""
    if members:
        parameters.append(f"constant Numbers &given [[buffer({last + 1})]]")
        rows = "".join(f"  {member.type} {member.name};\n" for member in members)
        given = f"struct Numbers {{\n{rows}}};\n\n"
    parameters += positions
    given += "".join(f"{line}\n" for line in structs)
    return f"{given}kernel void {name}(\n    " + ",\n    ".join(parameters) + ")\n{\n"


def _files(entries: Sequence[Entry], form: str) -> tuple[str, ...]:
    """The ``.metal`` files that a text needs, in their order."""
    types = {entry.dtype["value"] if entry.dtype.names else entry.dtype for entry in entries}
    files: list[str] = []
    if types & {float64, complex128}:
        files += _files_of_doubles(entries, complex128 in types)
    files.append("arrays.metal")
    if form == "row":
        files.append("reductions.metal")
    if types & {complex64, complex128}:
        files += ["complex.metal", "complex_functions.metal"]
    if any(entry.dtype.names for entry in entries):
        files.append("places.metal")
    own = (entry.data.file for entry in entries if entry.kind == "map")
    return tuple(dict.fromkeys([*files, *filter(None, own)]))


def _files_of_doubles(entries: Sequence[Entry], is_complex: bool) -> list[str]:
    """The chapters of 64-bit floats; functions of complex numbers are made of any of them."""
    wanted = {chapter for entry in entries if entry.kind == "map" for chapter in entry.data.doubles}
    chapters = [name for name in CHAPTERS if is_complex or name in wanted]
    return ["doubles.metal", *(f"doubles_{name}.metal" for name in chapters)]
