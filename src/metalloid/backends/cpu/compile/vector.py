"""The vector engine: a simdgroup of threads runs as vector code.

The vectoriser turns the code of one thread into code of a simdgroup; loops of `rows.h` run over a
threadgroup. The reference engine runs kernels that cannot be vectorised. See `variants` for the
variants of a kernel.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from metalloid.backends.cpu.compile.bounds import INDEX_PARAMETER, THREAD_CODE
from metalloid.backends.cpu.compile.kernel_ir import KernelIR, Lowered
from metalloid.backends.cpu.compile.lane_axes import axis_order
from metalloid.backends.cpu.compile.texture_specialization import definitions as textures
from metalloid.backends.cpu.compile.texture_specialization import known_words
from metalloid.backends.cpu.compile.thread_axes import contiguous_axis, reads_in_loops
from metalloid.backends.cpu.compile.thread_index import (
    SIMDGROUP_INDEX,
    THREAD_INDEX,
    ThreadIndexContext,
)
from metalloid.backends.cpu.compile.variants import Kind, Variant, variant_for
from metalloid.compiler.analysis.shapes import MAX_ALIGNMENT, VARYING, Shape, consecutive
from metalloid.compiler.analysis.simdgroup_functions import WIDTH, exchanges, has_any_width
from metalloid.compiler.analysis.threadgroup_memory import distances
from metalloid.compiler.analysis.workgroup_size import infer_workgroup_size
from metalloid.compiler.bounds.callees import THREAD
from metalloid.compiler.frontend.symbols import ENTRY_SYMBOL
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.link_modules import link_modules
from metalloid.compiler.ir.parser import (
    definition,
    flatten_address_spaces,
    map_functions,
    parse_function,
    replace_function,
)
from metalloid.compiler.ir.pass_manager import run_passes
from metalloid.compiler.transforms.assertions import (
    REPORTS,
    declare_reports,
)
from metalloid.compiler.transforms.callees import callees_of
from metalloid.compiler.vectorize.assemble_module import assemble
from metalloid.compiler.vectorize.atomics.accumulators import Accumulators
from metalloid.compiler.vectorize.atomics.buffer_privatization import (
    privatizable_words,
    privatize_buffers,
)
from metalloid.compiler.vectorize.atomics.privatized import flush_all
from metalloid.compiler.vectorize.builder import SCALAR_BYTES
from metalloid.compiler.vectorize.context import RowParameters, VectorizedFunction
from metalloid.compiler.vectorize.pipeline import (
    coarsen_rows,
    lower_kernel,
    vectorize,
    vectorize_callees,
)
from metalloid.compiler.vectorize.spec import KernelABI, VectorSpec
from metalloid.compiler.vectorize.workgroup.simdgroup_loops import SimdgroupLoops

#: From IR to code. LLVM's own vectorisers are off: they find nothing that is profitable.
CODE_COMMAND = (
    "clang", "-x", "ir", "-O2", "-fPIC", "-femulated-tls", "-fno-vectorize", "-fno-slp-vectorize",
    "-w",
)  # fmt: skip
#: The same for simdgroup loops: uniform branches are unswitched, out of the loops.
_LOOPS_COMMAND = (*CODE_COMMAND, "-mllvm", "-enable-nontrivial-unswitch")

#: Widths of simdgroups for kernels that do not depend on them, the best first, and bits of mask
#: elements. More lanes than a register has hide the latency of arithmetic.
_FORMS = {"AVX-512": ((32, 16, 8), 1), "AVX2": ((16, 8), 32)}
_NARROW = ((8,), 32)
#: Maximum loop-carried values per lane, over all coarsened rows, in half of the registers.
_CARRIED, _CARRIED_ELSE = {"AVX-512": 8}, 4
#: LLVM's feature of processors whose gathers are slow.
_LOADS_OF_LANES = "+prefer-no-gather"
#: Vector extensions with non-temporal stores of 16 bytes, the alignment of NumPy's arrays.
_NON_TEMPORAL = ("AVX-512", "AVX2", "SSE4.2")

#: Up to this size, threadgroup variables are on the stack, where LLVM knows their lifetime.
_FEW_BYTES = 4096
#: Up to this number of simdgroups, code is specialized for an inferred threadgroup size.
_FEW_SIMDGROUPS = 16

# Parameters of the functions in rows.h, by position.
(_IDS, _WORDS, _MEMORY, _X, _Y, _Z, _GRID_X, _GRID_Y, _GRID_Z), _INDEX = range(9), INDEX_PARAMETER
_COMMON = (_IDS, _WORDS, _MEMORY)  # uniform in a threadgroup
#: Position of the first thread of simdgroup %i, whose index is %index.
_POSITIONS = {Kind.SINGLE_ROW: ("%index", "0", "0"), Kind.SINGLE_COLUMN: ("0", "%i", "0")}
_EXCHANGE = re.compile(r"^declare [^\n]*(@__msl_\w+)\(", re.M)
_COMMON_GROUP_WIDTH = 16
#: Instructions that `host_target` leaves out, as LLVM would convert to bfloat with them.
_BFLOAT_INTRINSICS = "@llvm.x86.avx512bf16."
#: Functions that the code of checked kernels calls.
_SHADOW = Path(__file__).parents[1] / "native" / "include" / "shadow.h"
#: Modules without any of these words are not parsed for `_specialize`.
_SPECIALIZED = (SIMDGROUP_INDEX, *REPORTS, "atomic", "cmpxchg")


def lanes(vectors: str) -> tuple[tuple[int, ...], int]:
    """Widths of simdgroups for a vector extension, the best first, and bits of mask elements."""
    return _FORMS.get(vectors, _NARROW)


def functions(reports: bool, variant: Variant | None, parameters: int) -> str:
    """The code of one thread."""
    known = known_words(variant.textures if variant else ())
    words = "".join(f"{known.get(n, f'words[{n}]')}, " for n in range(parameters))
    return (
        f"{textures(are_known=bool(known), by_lane=not known)}"
        f'extern "C" [[clang::sycl_external]] __attribute__((noinline)) void {THREAD_CODE}'
        f"(METALLOID_THREAD_PARAMETERS) {{ void* const known[] = {{{words}nullptr}};"
        " metalloid::run_thread<mtl_entry_type>"
        "(ids, known, threadgroup_memory, x, y, z, grid_x, grid_y, grid_z, index); }"
    )


def _widths_of(kernel: KernelIR) -> tuple[int, ...]:
    """Widths that the kernel's simdgroups may have, the best first."""
    widths = lanes(kernel.vectors)[0]
    if exchanged := [name for name in _EXCHANGE.findall(kernel.ir) if exchanges(name)]:
        # A threadgroup of fewer threads than a simdgroup has no other lanes.
        is_narrow = kernel.max_threads in widths and all(map(has_any_width, exchanged))
        return (kernel.max_threads if is_narrow else WIDTH,)
    if kernel.synchronises and _uses(kernel, "y"):
        # Threadgroups of several rows, usually of 16 x 16 threads.
        return tuple(sorted(widths, key=lambda n: n > _COMMON_GROUP_WIDTH))
    return widths


def _initial_variant(kernel: KernelIR, ir: str) -> Variant:
    """The variant to compile before there is a launch."""
    kind, widths = Kind.FULL, _widths_of(kernel)
    if kernel.synchronises and _uses(kernel, "y"):
        kind = Kind.SINGLE_COLUMN
    elif kernel.synchronises and _uses(kernel, "(?:grid_)?[xyz]"):
        kind = Kind.SINGLE_ROW
    inferred_size = (
        None if kind is Kind.FULL else infer_workgroup_size(ir, definition(ir, THREAD_CODE))
    )
    if inferred_size is not None:
        size = (*inferred_size, 1)
        variant = variant_for(size, size, widths, waits=True, by_shape=True)
        if variant.kind is kind and math.prod(size) <= _FEW_SIMDGROUPS * widths[0]:
            return variant.for_group_of(size, size)
    return Variant(kind, widths[0])


def _uses(kernel: KernelIR, position: str) -> bool:
    return re.search(rf"^ .*%{position}\b", definition(kernel.ir, THREAD_CODE), re.M) is not None


def lower(kernel: KernelIR, variant: Variant | None) -> Lowered:
    """IR that is ready to become code, of a variant or, without one, of the initial variant.

    Raises
    ------
    Unsupported
        If the kernel cannot be vectorised; the message says why.
    """
    ir = kernel.ir
    if any(word in ir for word in _SPECIALIZED):
        ir = declare_reports(map_functions(ir, _specialize))
    ir = flatten_address_spaces(ir)
    variables, variable_bytes = distances(ir)
    scalar = KernelABI(THREAD_CODE, (_IDS, _WORDS), _MEMORY, variables)
    variant = variant or _initial_variant(kernel, ir)
    kind, width, axis, streams = variant.kind, variant.width, variant.axis, variant.streams
    ir = _with_axis_first(ir, axis)
    forms = _forms(kernel, variant)
    callees = callees_of(ir, THREAD_CODE)
    called = vectorize_callees(ir, scalar, callees, forms[0])
    functions = [lower_kernel(ir, scalar, callees) for _ in forms]
    private: dict[int, bool] = {}
    if not (callees or kernel.sanitize or kernel.counters.blocks):
        private = privatizable_words(functions[0], functions[0].parameters[_WORDS])
    if variant.is_private:
        for function in functions:
            privatize_buffers(function, function.parameters[_WORDS])
    reads, rows = reads_in_loops(functions[0]), 1
    below = axis_order(axis)[1]
    is_independent = not (kernel.synchronises or streams or callees)
    if reads and is_independent and _uses(kernel, f"(?:grid_)?{below}"):
        coarsened = lower_kernel(ir, scalar, callees)
        if variant.is_private:
            privatize_buffers(coarsened, coarsened.parameters[_WORDS])
        rows = _rows_at_a_time(coarsened, kernel)
        if rows > 1:
            forms.append(replace(forms[0], name="mtl_rows_of_threads"))
            functions.append(coarsened)
    adjacent, size = contiguous_axis(functions[0]), variant.group or (0, 0, 0)
    vectorized = [vectorize(*each, callees) for each in zip(functions, forms, strict=True)]
    ir = _with_constants(
        _with_driver(ir, kernel, kind),
        ("width", "i32", width),
        ("rows", "i32", rows),
        ("streams", "i8", int(streams)),
        ("axis", "i8", "xyz".index(axis)),
        *((f"size_{each}", "i32", count) for each, count in zip("xyz", size, strict=True)),
        *_sizes(vectorized),
    )
    loops = ""
    if kernel.synchronises:
        is_given = (
            variable_bytes > _FEW_BYTES
            or bool(kernel.sanitize)  # shadow memory is of memory that the runtime knows
            or _uses(kernel, "threadgroup_memory")
        )
        own_bytes = 0 if is_given else variable_bytes
        loops = _simdgroup_loops(forms, vectorized, _POSITIONS.get(kind), own_bytes).text()
    description = f"simd: {width} threads at a time" + f", {rows} rows" * (rows > 1)
    accumulators = flush_all(_accumulators(vectorized))
    ir = assemble(ir, THREAD_CODE, [*called, *vectorized], loops + accumulators)
    if _BFLOAT_INTRINSICS in ir:  # conversions are integer code by now, which is exact
        ir = ir.replace("-avx512bf16", "+avx512bf16")
    if not kernel.gathers:
        ir = ir.replace('"target-features"="', f'"target-features"="{_LOADS_OF_LANES},')
    can_stream = kernel.vectors in _NON_TEMPORAL and not kernel.sanitize
    return Lowered(
        ir=ir,
        code_command=_LOOPS_COMMAND if kernel.synchronises else CODE_COMMAND,
        engine=f"{description}, from barrier to barrier" if kernel.synchronises else description,
        variant=variant,
        widths=_widths_of(kernel),
        variable_bytes=variable_bytes,
        reads_in_loops=reads,
        rows=rows,
        streamable=vectorized[0].streamable if can_stream else 0,
        axis=adjacent,
        private_words=tuple(private),
        adds_in_loops=any(private.values()),
    )


def _specialize(function: Function) -> None:
    """Let a function use that it is called for a thread whose index is known."""
    index = function.parameters[_INDEX] if function.name == THREAD_CODE else None
    if THREAD in function.parameters:  # of a function with checks
        index = THREAD
    run_passes(function, THREAD_INDEX, ThreadIndexContext(index))


def _with_axis_first(ir: str, axis: str) -> str:
    """Permute the position parameters of the code of one thread, as `axis_first` does."""
    if axis == "x":
        return ir
    function = parse_function(ir, THREAD_CODE, retain_hints=True)
    given = [*function.parameters]
    for n, source in enumerate(axis_order(axis)):
        for first in (_X, _GRID_X):
            function.parameters[first + n] = given[first + "xyz".index(source)]
    return replace_function(ir, function)


def _accumulators(vectorized: Sequence[VectorizedFunction]) -> list[Accumulators]:
    return [each.accumulators for each in vectorized if each.accumulators]


def _sizes(vectorized: Sequence[VectorizedFunction]) -> Iterator[tuple[str, str, int]]:
    """Sizes of the memory that the vector functions use, as constants: name, type, bytes."""
    accumulators = _accumulators(vectorized)
    for name, count in (
        ("state", max(each.frame_bytes for each in vectorized)),
        ("common", SCALAR_BYTES * len(vectorized[0].common)),
        ("shared", max(each.shared_bytes for each in accumulators)),
        ("own", max(each.own_bytes for each in accumulators)),
    ):
        yield f"{name}_bytes", "i64", count


def _with_constants(ir: str, *constants: tuple[str, str, int]) -> str:
    """The module with values for the constants of rows.h."""
    for name, type, number in constants:
        pattern = rf"^@mtl_{name} = .*$"
        ir = re.sub(pattern, f"@mtl_{name} = internal constant {type} {number}", ir, flags=re.M)
    return ir


def _rows_at_a_time(function: Function, kernel: KernelIR) -> int:
    """Coarsen a function of one thread over several rows, if profitable; the number of rows."""
    names = [parameter.name for parameter in function.parameters]
    parameters = RowParameters(
        along=frozenset((names[_Y], names[_GRID_Y])),
        across=frozenset((names[_X], names[_GRID_X])),
        index=names[_INDEX],
        max_carried=_CARRIED.get(kernel.vectors, _CARRIED_ELSE),
    )
    return coarsen_rows(function, parameters)


def _simdgroup_loops(
    forms: Sequence[VectorSpec],
    vectorized: Sequence[VectorizedFunction],
    first: tuple[str, str, str] | None,
    own_bytes: int,
) -> SimdgroupLoops:
    """The simdgroup loops; `first` is the position of a simdgroup, if it is known."""
    full_name = next((form.name for form in forms if not form.partial), "")
    partial = next((form.name for form in forms if form.partial), "")
    live_in, defs = (
        [set().union(*region) for region in zip(*of_forms, strict=True)]
        for of_forms in ([each.live_in for each in vectorized], [each.defs for each in vectorized])
    )
    return SimdgroupLoops(
        full=full_name,
        partial=partial,
        successors=vectorized[0].successors,
        width=forms[0].width,
        frame_bytes=max(each.frame_bytes for each in vectorized),
        common=vectorized[0].common,
        live_in=live_in,
        defs=defs,
        is_uniform=all(each.is_uniform for each in vectorized),
        positions=first,
        own_bytes=own_bytes,
    )


def _forms(kernel: KernelIR, variant: Variant) -> list[VectorSpec]:
    """Vectorisation specs of the functions that a variant calls."""
    mask_bits = lanes(kernel.vectors)[1]
    if kernel.synchronises:
        forms = _waiting(variant.width, variant.kind, mask_bits, not variant.is_relaxed)
    else:
        forms = _independent(variant.width, variant.kind, mask_bits, variant.streams)
    forms = [replace(form, prefetches_in_loops=kernel.prefetches_in_loops) for form in forms]
    return [
        form
        if form.partial and not form.has_frame  # called for the tail of a row
        else replace(form, accumulators=(_WORDS, kernel.parameters))
        for form in forms
    ]


def _independent(width: int, kind: Kind, mask_bits: int, streams: bool) -> list[VectorSpec]:
    row = consecutive(width)
    shapes = {_X: consecutive(width, width.bit_length() - 1), _GRID_X: row, _INDEX: row}
    forms = [VectorSpec("mtl_threads", width, mask_bits, shapes, _INDEX, streams=streams)]
    if kind is Kind.TAIL:
        forms.append(
            VectorSpec("mtl_partial_threads", width, mask_bits, shapes, _INDEX, partial=True)
        )
    return forms


def _waiting(width: int, kind: Kind, mask_bits: int, is_strict: bool) -> list[VectorSpec]:
    aligned = consecutive(width, width.bit_length() - 1)
    row: dict[int, Shape] = {_X: aligned, _GRID_X: consecutive(width), _INDEX: aligned}
    if kind is Kind.MULTI_ROW:
        axes = (_X, _Y, _Z, _GRID_X, _GRID_Y, _GRID_Z)
        shapes = {**dict.fromkeys(axes, VARYING), _INDEX: aligned}
        return [
            VectorSpec(
                name="mtl_simdgroup",
                width=width,
                mask_bits=mask_bits,
                shapes=shapes,
                index=_INDEX,
                partial=True,
                has_frame=True,
                computed=axes,
                common=_COMMON,
                is_strict=is_strict,
            )
        ]
    if kind is Kind.SINGLE_COLUMN:
        row[_X] = consecutive(width, MAX_ALIGNMENT)
    full_name = VectorSpec(
        name="mtl_simdgroup",
        width=width,
        mask_bits=mask_bits,
        shapes=row,
        index=_INDEX,
        partial=False,
        has_frame=True,
        computed=(),
        common=_COMMON,
        is_strict=is_strict,
    )
    if kind is not Kind.TAIL:
        return [full_name]
    return [full_name, replace(full_name, name="mtl_partial_simdgroup", partial=True)]


def _with_driver(ir: str, kernel: KernelIR, kind: Kind) -> str:
    """The module with the kernel's entry: the loops that call its vector code."""
    run = f"run_rows<{kernel.parameters}, {str(kind is Kind.TAIL).lower()}>"
    if kernel.synchronises:
        run = f"run_simdgroups<{kernel.parameters}>"
    driver = _SHADOW.read_text() if kernel.sanitize else ""
    driver += (
        f'extern "C" [[clang::sycl_external]] void {ENTRY_SYMBOL}'
        "(const mtl_launch* launch, mtl_range* range)"
        f" {{ metalloid::{run}(launch, range); }}"
    )
    ir = re.sub(rf"^define (?=[^\n]*@{THREAD_CODE}\()", "define internal ", ir, flags=re.M)
    return link_modules(ir, flatten_address_spaces(kernel.compile_auxiliary(driver)), "driver")
