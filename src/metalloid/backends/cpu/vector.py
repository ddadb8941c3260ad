"""The vector engine: as many threads at a time as the processor's registers have lanes.

The compiler turns the code of one thread into that of a simdgroup (`metalloid.compiler.vectorize`);
loops of `native/rows.h` go over a threadgroup. What has no vector form is left to the reference
engine.

A kernel comes in variants, made when a launch needs them: ``whole`` if all simdgroups are complete
and lie in one row; ``ragged`` if some have missing lanes. Where threads wait for each other there
are also ``row`` and ``column``, if the simdgroups of a threadgroup lie side by side or one below
the other, and ``scattered``, if a simdgroup covers several rows; and each with ``_lenient`` behind
it, for launches in which threads may miss a barrier. Independent threads have ``_streaming`` ones,
for launches that write more than the caches hold. Where threadgroups are one thread wide, lanes lie
along another axis: ``row_32_y``, ``row_32_z``. What is compiled before there is a launch may be
for threadgroups of one size alone, as in ``row_32_256x1x1``: then LLVM knows how many simdgroups
there are, and can keep in registers what they hand on at barriers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from metalloid.backends.cpu.grouping import (
    axis_first,
    axis_order,
    contiguous_axis,
    lane_axis,
    reads_in_loops,
)
from metalloid.backends.cpu.kernel_ir import KernelIR, Lowered
from metalloid.backends.cpu.known_textures import definitions as textures
from metalloid.backends.cpu.known_textures import known_words
from metalloid.compiler.analysis.shapes import MAX_ALIGNMENT, VARYING, Shape, consecutive
from metalloid.compiler.analysis.simdgroup_functions import WIDTH, exchanges
from metalloid.compiler.analysis.threadgroup_memory import distances
from metalloid.compiler.analysis.workgroup_size import infer_workgroup_size
from metalloid.compiler.frontend.entry import ENTRY_SYMBOL
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.instruction_parser import ONE_THREAD
from metalloid.compiler.ir.link_modules import link_modules
from metalloid.compiler.ir.parser import definition, flatten_address_spaces
from metalloid.compiler.transforms.assertions import pass_thread_index
from metalloid.compiler.transforms.callees import callees_of
from metalloid.compiler.transforms.coarsen import coarsen
from metalloid.compiler.vectorize.assemble_module import assemble
from metalloid.compiler.vectorize.atomics.accumulators import Accumulators
from metalloid.compiler.vectorize.atomics.privatized import flush_all
from metalloid.compiler.vectorize.builder import SCALAR_BYTES
from metalloid.compiler.vectorize.pipeline import (
    KernelABI,
    VectorizedFunction,
    parse,
    vectorize,
    vectorize_callees,
)
from metalloid.compiler.vectorize.spec import VectorSpec
from metalloid.compiler.vectorize.workgroup.simdgroup_loops import Rounds
from metalloid.runtime.program import Size

#: From IR to code: what is not vector code already is not worth it.
CODE_COMMAND = (
    "clang", "-x", "ir", "-O2", "-fPIC", "-femulated-tls", "-fno-vectorize", "-fno-slp-vectorize",
    "-w",
)  # fmt: skip
#: The same for loops over simdgroups: what they agree on is asked in front of them.
_LOOPS_COMMAND = (*CODE_COMMAND, "-mllvm", "-enable-nontrivial-unswitch")

#: Lanes that simdgroups may have if nobody counts them, the best first, and bits of the integers
#: that masks are made of. More lanes than a register has hide the latency of arithmetic.
_FORMS = {"AVX-512": ((32, 16, 8), 1), "AVX2": ((16, 8), 32)}
_NARROW = ((8,), 32)
#: Numbers of each lane that loops over several rows of threads may carry on, in half of the
#: registers.
_CARRIED, _CARRIED_ELSE = {"AVX-512": 8}, 4
#: Instructions that store past the caches, in pieces that any array of NumPy's is aligned to.
_STREAMING = ("AVX-512", "AVX2", "SSE4.2")

#: So many threads may run one by one rather than have a variant compiled for them.
_FEW_THREADS = 4096
#: In a row of so many simdgroups an incomplete one more does not matter.
_LONG_ROW = 4
#: Nor are fewer than so many in a row worth it.
_WORTH_A_MASK = 3
#: Threadgroup variables of so many bytes lie on the stack, where LLVM knows how long they live.
_FEW_BYTES = 4096
#: For at most so many simdgroups code is made for their number alone, where that can be told.
_FEW_SIMDGROUPS = 16

# Parameters of the functions in rows.h, by position.
_IDS, _WORDS, _MEMORY, _X, _Y, _Z, _GRID_X, _GRID_Y, _GRID_Z, _INDEX = range(10)
_COMMON = (_IDS, _WORDS, _MEMORY)  # to all threads of a threadgroup
#: Where simdgroup %i begins, whose first thread has the index %index.
_POSITIONS = {"row": ("%index", "0", "0"), "column": ("0", "%i", "0")}
_SCALAR = "mtl_thread"  # the function of one thread
_POSITION = re.compile(r"%((?:grid_)?)([xyz])\b")
_EXCHANGE = re.compile(r"^declare [^\n]*(@__msl_\w+)\(", re.M)
#: An atomic operation on threadgroup memory: one thread of the operating system runs a threadgroup.
_SHARED_ATOMIC = re.compile(
    r"^( .*\b(?:atomicrmw|cmpxchg|atomic) .*ptr addrspace\(3\) .*?)"
    r"((?:monotonic|acquire|release|acq_rel|seq_cst)\b)", re.M,
)  # fmt: skip
_USUAL_ROW = 16
_SIMDGROUP_INDEX = re.compile(r"(?:\btail )?\bcall [^\n]*@__msl_simdgroup_index\(\).*")


def lanes(vectors: str) -> tuple[tuple[int, ...], int]:
    """Lanes that simdgroups may have with some vector instructions, and bits of masks' integers."""
    return _FORMS.get(vectors, _NARROW)


def functions(reports: bool, variant: str, parameters: int) -> str:
    """The code of one thread."""
    known = known_words(variant)
    words = "".join(f"{known.get(n, f'words[{n}]')}, " for n in range(parameters))
    return (
        f"{textures(are_known=bool(known), by_lane=not known)}"
        f'extern "C" [[clang::sycl_external]] __attribute__((noinline)) void {_SCALAR}'
        f"(METALLOID_THREAD_PARAMETERS) {{ void* const known[] = {{{words}nullptr}};"
        " metalloid::run_thread<mtl_entry_type>"
        "(ids, known, threadgroup_memory, x, y, z, grid_x, grid_y, grid_z, index); }"
    )


def variant_for(grid: Size, group: Size, widths: Sequence[int], waits: bool, by_shape: bool) -> str:
    """The variant that a launch should have, or must if threads wait for each other.

    Rows and columns of simdgroups have variants of their own where positions matter (`by_shape`).
    """
    if not waits and math.prod(grid) <= _FEW_THREADS:
        return f"whole_{widths[0]}"
    axis = lane_axis(group)
    if axis != "x":
        longest_first = sorted(widths, reverse=True)
        turned = axis_first(grid, axis), axis_first(group, axis)
        return f"{_variant_along_x(*turned, longest_first, waits, by_shape)}_{axis}"
    return _variant_along_x(grid, group, widths, waits, by_shape)


def _variant_along_x(
    grid: Size, group: Size, widths: Sequence[int], waits: bool, by_shape: bool
) -> str:
    x, y, z = group
    several_rows = y * z > 1
    if by_shape and x in widths and y > 1 and z == 1 and grid[0] % x == 0:
        return f"column_{x}"
    may_end_anywhere = not (waits and several_rows)
    fitting = [n for n in widths if x % n == 0 or (may_end_anywhere and x >= _LONG_ROW * n)]
    width = next(iter(fitting or [n for n in widths if n <= x] or widths[-1:]))
    if not waits:
        groups, rest = divmod(grid[0], x)
        ends = x % width, rest % width
        left_over = (groups * ends[0] + ends[1]) * grid[1] * grid[2]
        worth_it = left_over > _FEW_THREADS and max(ends) >= _WORTH_A_MASK
        return f"ragged_{width}" if worth_it else f"whole_{width}"
    if several_rows and (not fitting or grid[0] % x):
        return f"scattered_{width}"
    exact = (x * y * z) % width == 0 and all(n % m == 0 for n, m in zip(grid, group, strict=True))
    if not exact:
        return f"ragged_{width}"
    return f"whole_{width}" if several_rows or not by_shape else f"row_{width}"


def exactly(variant: str, grid: Size, group: Size) -> str:
    """The variant for threadgroups of this size alone, if all of the grid have it."""
    if any(n % m for n, m in zip(grid, group, strict=True)):
        return variant
    return f"{variant}_{'x'.join(map(str, group))}"


def _widths_of(kernel: KernelIR) -> tuple[int, ...]:
    """Lanes that the kernel's simdgroups may have, the best first."""
    if any(exchanges(name) for name in _EXCHANGE.findall(kernel.ir)):
        return (WIDTH,)
    widths = lanes(kernel.vectors)[0]
    if kernel.synchronises and _uses(kernel, "y"):
        # Threadgroups of several rows, most often of 16 x 16 threads.
        return tuple(sorted(widths, key=lambda n: n > _USUAL_ROW))
    return widths


def _first_variant(kernel: KernelIR, ir: str) -> str:
    """What to compile before there is a launch."""
    kind, widths = "whole", _widths_of(kernel)
    if kernel.synchronises and _uses(kernel, "y"):
        kind = "column"
    elif kernel.synchronises and _uses(kernel, "(?:grid_)?[xyz]"):
        kind = "row"
    likely = None if kind == "whole" else infer_workgroup_size(ir, definition(ir, _SCALAR))
    if likely is not None:
        size = (*likely, 1)
        variant = variant_for(size, size, widths, waits=True, by_shape=True)
        if variant.startswith(kind) and math.prod(size) <= _FEW_SIMDGROUPS * widths[0]:
            return exactly(variant, size, size)
    return f"{kind}_{widths[0]}"


def _uses(kernel: KernelIR, position: str) -> bool:
    return re.search(rf"^ .*%{position}\b", definition(kernel.ir, _SCALAR), re.M) is not None


def lower(kernel: KernelIR, variant: str) -> Lowered:
    """IR that is ready to become code, of the variant asked for or that to begin with.

    Raises
    ------
    Unsupported
        If the kernel does what has no vector form; the text says what.
    """
    ir = _SHARED_ATOMIC.sub(rf"\1{ONE_THREAD} \2", kernel.ir)
    ir = _with_simdgroup_index(flatten_address_spaces(ir))
    if kernel.reports:
        ir = pass_thread_index(ir, definition(ir, _SCALAR), "%index")
    variables, variable_bytes = distances(ir)
    scalar = KernelABI(_SCALAR, (_IDS, _WORDS), _MEMORY, variables)
    variant = variant or _first_variant(kernel, ir)
    kind, lanes_of_variant, *manner = variant.split("_")
    size = next((each.split("x") for each in manner if each[0].isdigit()), ("0", "0", "0"))
    axis = next((each for each in manner if each in ("y", "z")), "x")
    ir = _with_axis_first(ir, axis)
    width, streams = int(lanes_of_variant), "streaming" in manner
    forms = _forms(kernel, width, kind, is_strict="lenient" not in manner, streams=streams)
    callees = callees_of(ir, _SCALAR)
    called = vectorize_callees(ir, scalar, callees, forms[0])
    functions = [parse(ir, scalar, callees) for _ in forms]
    reads, rows = reads_in_loops(functions[0]), 1
    below = axis_order(axis)[1]
    is_independent = not (kernel.synchronises or streams or callees)
    if reads and is_independent and _uses(kernel, f"(?:grid_)?{below}"):
        several = parse(ir, scalar, callees)
        rows = _rows_at_a_time(several, kernel)
        if rows > 1:
            forms.append(replace(forms[0], name="mtl_rows_of_threads"))
            functions.append(several)
    adjacent = contiguous_axis(functions[0])
    made = [vectorize(*each, callees) for each in zip(functions, forms, strict=True)]
    ir = _with_constants(
        _with_driver(ir, kernel, kind),
        ("width", "i32", width),
        ("rows", "i32", rows),
        ("streams", "i8", int(streams)),
        ("axis", "i8", "xyz".index(axis)),
        *((f"size_{axis}", "i32", int(count)) for axis, count in zip("xyz", size, strict=True)),
        *_sizes(made),
    )
    rounds = ""
    if kernel.synchronises:
        is_given = variable_bytes > _FEW_BYTES or _uses(kernel, "threadgroup_memory")
        own_bytes = 0 if is_given else variable_bytes
        rounds = _rounds(forms, made, _POSITIONS.get(kind), own_bytes).text()
    way = f"simd: {width} threads at a time" + f", {rows} rows" * (rows > 1)
    return Lowered(
        assemble(ir, _SCALAR, [*called, *made], rounds + flush_all(_accumulators(made))),
        _LOOPS_COMMAND if kernel.synchronises else CODE_COMMAND,
        f"{way}, from barrier to barrier" if kernel.synchronises else way,
        variant,
        _widths_of(kernel),
        variable_bytes,
        reads_in_loops=reads,
        rows=rows,
        streamable=made[0].streamable if kernel.vectors in _STREAMING else 0,
        axis=adjacent,
    )


def _with_axis_first(ir: str, axis: str) -> str:
    """The positions that the code of one thread is given, in the order of `axis_first`."""
    own = definition(ir, _SCALAR)
    head, rest = own.split("\n", 1)
    names = dict(zip("xyz", axis_order(axis), strict=True))
    head = _POSITION.sub(lambda match: f"%{match[1]}{names[match[2]]}", head)
    return ir.replace(own, f"{head}\n{rest}")


def _accumulators(made: Sequence[VectorizedFunction]) -> list[Accumulators]:
    return [each.accumulators for each in made if each.accumulators]


def _sizes(made: Sequence[VectorizedFunction]) -> Iterator[tuple[str, str, int]]:
    """What the loops have to know of the memory that functions use, by name and type."""
    accumulators = _accumulators(made)
    for name, count in (
        ("state", max(each.state_bytes for each in made)),
        ("common", SCALAR_BYTES * len(made[0].common)),
        ("shared", max(each.shared_bytes for each in accumulators)),
        ("own", max(each.own_bytes for each in accumulators)),
    ):
        yield f"{name}_bytes", "i64", count


def _with_constants(ir: str, *constants: tuple[str, str, int]) -> str:
    """With values of what rows.h declares as constants."""
    for name, type, number in constants:
        pattern = rf"^@mtl_{name} = .*$"
        ir = re.sub(pattern, f"@mtl_{name} = internal constant {type} {number}", ir, flags=re.M)
    return ir


def _rows_at_a_time(function: Function, kernel: KernelIR) -> int:
    """Let a function of one thread do the work of several rows, if that pays; of how many."""
    names = [parameter.name for parameter in function.parameters]
    along, across = ({names[n] for n in places} for places in ((_Y, _GRID_Y), (_X, _GRID_X)))
    most = _CARRIED.get(kernel.vectors, _CARRIED_ELSE)
    return coarsen(function, along, across, names[_INDEX], most)


def _rounds(
    forms: Sequence[VectorSpec],
    made: Sequence[VectorizedFunction],
    first: tuple[str, str, str] | None,
    own_bytes: int,
) -> Rounds:
    """The loops over simdgroups; `first` is the position of a simdgroup, if it is known."""
    whole = next((form.name for form in forms if not form.partial), "")
    part = next((form.name for form in forms if form.partial), "")
    uses, changes = (
        [set().union(*region) for region in zip(*of_forms, strict=True)]
        for of_forms in ([one.uses for one in made], [one.changes for one in made])
    )
    return Rounds(
        whole, part, made[0].outcomes, forms[0].width, max(one.state_bytes for one in made),
        made[0].common, uses, changes, all(one.in_step for one in made), first, own_bytes,
    )  # fmt: skip


def _with_simdgroup_index(ir: str) -> str:
    """A thread's simdgroup follows from its index, a parameter of the code of one thread."""
    own = definition(ir, _SCALAR)
    if "@__msl_simdgroup_index(" not in own:
        return ir
    return ir.replace(own, _SIMDGROUP_INDEX.sub(f"lshr i32 %index, {WIDTH.bit_length() - 1}", own))


def _forms(
    kernel: KernelIR, width: int, kind: str, is_strict: bool, streams: bool
) -> list[VectorSpec]:
    """Forms of the functions that a variant calls."""
    mask_bits = lanes(kernel.vectors)[1]
    if kernel.synchronises:
        forms = _waiting(width, kind, mask_bits, is_strict)
    else:
        forms = _independent(width, kind, mask_bits, streams)
    return [
        form
        if form.partial and not form.has_state  # called for the rest of a row
        else replace(form, accumulators=(_WORDS, kernel.parameters))
        for form in forms
    ]


def _independent(width: int, kind: str, mask_bits: int, streams: bool) -> list[VectorSpec]:
    row = consecutive(width)
    shapes = {_X: consecutive(width, width.bit_length() - 1), _GRID_X: row, _INDEX: row}
    forms = [VectorSpec("mtl_threads", width, mask_bits, shapes, _INDEX, streams=streams)]
    if kind == "ragged":
        forms.append(
            VectorSpec("mtl_part_of_threads", width, mask_bits, shapes, _INDEX, partial=True)
        )
    return forms


def _waiting(width: int, kind: str, mask_bits: int, is_strict: bool) -> list[VectorSpec]:
    aligned = consecutive(width, width.bit_length() - 1)
    row: dict[int, Shape] = {_X: aligned, _GRID_X: consecutive(width), _INDEX: aligned}
    if kind == "scattered":
        places = (_X, _Y, _Z, _GRID_X, _GRID_Y, _GRID_Z)
        shapes = {**dict.fromkeys(places, VARYING), _INDEX: aligned}
        return [
            VectorSpec(
                "mtl_simdgroup", width, mask_bits, shapes, _INDEX, True, True, places, _COMMON,
                is_strict,
            )
        ]  # fmt: skip
    if kind == "column":
        row[_X] = consecutive(width, MAX_ALIGNMENT)
    whole = VectorSpec(
        "mtl_simdgroup", width, mask_bits, row, _INDEX, False, True, (), _COMMON, is_strict
    )
    if kind != "ragged":
        return [whole]
    return [whole, replace(whole, name="mtl_part_of_simdgroup", partial=True)]


def _with_driver(ir: str, kernel: KernelIR, kind: str) -> str:
    """With the kernel's entry: the loops that call its vector code."""
    run = f"run_rows<{kernel.parameters}, {str(kind == 'ragged').lower()}>"
    if kernel.synchronises:
        run = f"run_simdgroups<{kernel.parameters}>"
    driver = (
        f'extern "C" [[clang::sycl_external]] void {ENTRY_SYMBOL}'
        "(const mtl_launch* launch, mtl_range* range)"
        f" {{ metalloid::{run}(launch, range); }}"
    )
    ir = re.sub(rf"^define (?=[^\n]*@{_SCALAR}\()", "define internal ", ir, flags=re.M)
    return link_modules(ir, flatten_address_spaces(kernel.beside(driver)), "driver")
