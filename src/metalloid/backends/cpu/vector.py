"""The vector engine: as many threads at a time as the processor's registers have lanes.

The compiler turns the code of one thread into that of a simdgroup (`metalloid.compiler.spmd`);
loops of `native/rows.h` go over a threadgroup. What has no vector form is left to the reference
engine.

A kernel comes in variants, made when a launch needs them: ``whole`` if all simdgroups are complete
and lie in one row; ``ragged`` if some have missing lanes; and for threads that wait for each other
``scattered``, if a simdgroup covers several rows.
"""

from __future__ import annotations

import re

from metalloid.backends.cpu import host
from metalloid.backends.cpu.kernel_ir import ENTRY_SYMBOL, KernelIR
from metalloid.compiler.llvm.parser import flatten_address_spaces
from metalloid.compiler.llvm.types import Unsupported
from metalloid.compiler.spmd.lanes import WIDTH, exchanges
from metalloid.compiler.spmd.shapes import VARYING, Shape, consecutive
from metalloid.compiler.spmd.vectorise import Form, assemble, parse, vectorise
from metalloid.runtime.device import Size

#: From IR to code: what is not vector code already is not worth it.
CODE_COMMAND: tuple[str, ...] = (
    "clang", "-x", "ir", "-O2", "-fPIC", "-femulated-tls", "-fno-vectorize", "-fno-slp-vectorize",
    "-w",
)  # fmt: skip

#: Lanes of independent threads, and bits of the integers that masks are made of. More lanes than a
#: register has hide the latency of arithmetic.
_FORMS = {"AVX-512": (16, 1), "AVX2": (16, 32)}
_NARROW = (8, 32)

#: So many threads may run one by one rather than have a variant compiled for them.
_FEW_THREADS = 4096

# Parameters of the functions in rows.h, by position.
_X, _Y, _Z, _GRID_X, _GRID_Y, _GRID_Z, _INDEX = range(3, 10)
_EXCHANGE = re.compile(r"^declare [^\n]*(@__msl_\w+)\(", re.M)
_STATE_BYTES = re.compile(r"^@mtl_state_bytes = .*$", re.M)


def lanes() -> tuple[int, int]:
    """Lanes of independent threads on this processor, and bits of the integers of its masks."""
    return _FORMS.get(host.vector_extension(), _NARROW)


def functions(reports: bool) -> str:
    """What the runtime may call, of which `lower` keeps one; and the code of one thread."""
    own = lanes()[0]
    drivers = [
        ("whole_rows", f"run_rows<mtl_entry_type, {own}, false>"),
        ("ragged_rows", f"run_rows<mtl_entry_type, {own}, true>"),
    ]
    for width in sorted({own, WIDTH}):
        for variant, whole in (("whole", "true"), ("ragged", "false")):
            run = f"run_simdgroups<mtl_entry_type, {width}, {whole}>"
            drivers.append((f"{variant}_{width}", run))
    return "\n".join(
        (
            'extern "C" [[clang::sycl_external]] __attribute__((noinline)) void mtl_thread'
            "(METALLOID_THREAD_PARAMETERS)"
            " { metalloid::run_thread<mtl_entry_type>(ids, words, threadgroup_memory, "
            "x, y, z, grid_x, grid_y, grid_z, index); }",
            *(
                f'extern "C" [[clang::sycl_external]] void mtl_run_{name}'
                "(const mtl_launch* launch, mtl_range* range)"
                f" {{ metalloid::{run}(launch, range); }}"
                for name, run in drivers
            ),
        )
    )


def variant_for(grid: Size, group: Size, width: int) -> str:
    """The variant that a launch of a kernel with waiting threads needs."""
    x, y, z = group
    if y * z > 1 and (x % width or grid[0] % x):
        return "scattered"
    exact = (x * y * z) % width == 0 and all(n % m == 0 for n, m in zip(grid, group, strict=True))
    return "whole" if exact else "ragged"


def variant_of_rows(grid: Size, group: Size, width: int) -> str:
    """The variant that a launch of a kernel with independent threads should have."""
    groups, rest = divmod(grid[0], group[0])
    left_over = groups * (group[0] % width) + rest % width
    return "ragged" if left_over * grid[1] * grid[2] > _FEW_THREADS else "whole"


def width_of(kernel: KernelIR) -> int:
    """Lanes of the kernel's simdgroups."""
    if any(exchanges(name) for name in _EXCHANGE.findall(kernel.ir)):
        return WIDTH
    return lanes()[0]


def lower(kernel: KernelIR, variant: str) -> str:
    """IR that is ready to become code.

    Raises
    ------
    Unsupported
        If the kernel does what has no vector form; the text says what.
    """
    if kernel.reports:
        raise Unsupported("messages to the host")
    ir = flatten_address_spaces(kernel.ir)
    if not kernel.synchronises:
        forms = _independent(variant)
        made = [vectorise(parse(ir, "mtl_thread"), form) for form in forms]
        return _with_driver(assemble(ir, "mtl_thread", made), f"{variant}_rows")
    width = width_of(kernel)
    made_all = [vectorise(parse(ir, "mtl_thread"), form) for form in _waiting(width, variant)]
    state = max(made.state_bytes for made in made_all)
    ir = _STATE_BYTES.sub(f"@mtl_state_bytes = internal constant i64 {state}", ir)
    driver = "ragged" if variant == "ragged" else "whole"
    return _with_driver(assemble(ir, "mtl_thread", made_all), f"{driver}_{width}")


def _independent(variant: str) -> list[Form]:
    width, mask_bits = lanes()
    row = consecutive(width)
    shapes = {_X: consecutive(width, width.bit_length() - 1), _GRID_X: row, _INDEX: row}
    forms = [Form("mtl_threads", width, mask_bits, shapes, _INDEX)]
    if variant == "ragged":
        forms.append(Form("mtl_part_of_threads", width, mask_bits, shapes, _INDEX, partial=True))
    return forms


def _waiting(width: int, variant: str) -> list[Form]:
    """Forms of the functions that a variant calls."""
    mask_bits = lanes()[1]
    aligned = consecutive(width, width.bit_length() - 1)
    row: dict[int, Shape] = {_X: aligned, _GRID_X: consecutive(width), _INDEX: aligned}
    if variant == "scattered":
        places = (_X, _Y, _Z, _GRID_X, _GRID_Y, _GRID_Z)
        shapes = {**dict.fromkeys(places, VARYING), _INDEX: aligned}
        return [
            Form("mtl_simdgroup", width, mask_bits, shapes, _INDEX, True, True, computed=places)
        ]
    whole = Form("mtl_simdgroup", width, mask_bits, row, _INDEX, False, True)
    if variant == "whole":
        return [whole]
    return [whole, Form("mtl_part_of_simdgroup", width, mask_bits, row, _INDEX, True, True)]


def _with_driver(ir: str, name: str) -> str:
    """Keep one of the drivers, as the kernel's entry."""

    def keep(match: re.Match[str]) -> str:
        if match[1] != name:
            return ""
        return match[0].replace(f"@mtl_run_{name}(", f"@{ENTRY_SYMBOL}(", 1)

    return re.sub(r"^define [^\n]*@mtl_run_(\w+)\(.*?^\}\n", keep, ir, flags=re.M | re.S)


def describe(kernel: KernelIR) -> str:
    """How it runs a kernel, for people."""
    if not kernel.synchronises:
        return f"simd: {lanes()[0]} threads at a time"
    return f"simd: {width_of(kernel)} threads at a time, from barrier to barrier"
