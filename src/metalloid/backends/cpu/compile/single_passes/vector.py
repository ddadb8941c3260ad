"""Single passes over kernels for CPUs on textual IR: ``metalloid passes``, as LLVM's ``opt``.

The text may be clang's, or what a pass left (``METALLOID_PRINT_AFTER``). Parameters of a kernel's
thread are known by their names, as the CPU back end names them: ``%threadgroup_memory`` and
``%index`` must be there, others may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from metalloid.backends.cpu.compile.pipeline import PIPELINE
from metalloid.compiler.analysis.barriers import barrier_blocks
from metalloid.compiler.analysis.shapes import consecutive
from metalloid.compiler.analysis.threadgroup_memory import distances
from metalloid.compiler.bounds.interface import Interface
from metalloid.compiler.bounds.objects import variable_sizes
from metalloid.compiler.bounds.pipeline import CHECKS, BoundsContext
from metalloid.compiler.ir.function import Function, Instruction
from metalloid.compiler.ir.parser import flatten_address_spaces, function_names
from metalloid.compiler.ir.pass_manager import Pass
from metalloid.compiler.ir.printer import function_text
from metalloid.compiler.ir.single_passes import InvalidInput, parse_input, run_verified
from metalloid.compiler.transforms.callees import callees_of
from metalloid.compiler.vectorize.context import Context, RowParameters
from metalloid.compiler.vectorize.pipeline import (
    COARSENING,
    LOWERING,
    LOWERING_OF_CALLEES,
    VECTORIZATION,
    spec_of_callee,
    vectorize_callees,
)
from metalloid.compiler.vectorize.spec import KernelABI, VectorSpec

#: Maximum loop-carried values per lane, as with registers of AVX2.
_MAX_CARRIED = 4
_READ_ONLY = ("%ids", "%words")
_WORDS, _MEMORY, _INDEX = "%words", "%threadgroup_memory", "%index"
_ROWS = RowParameters(
    along=frozenset(("%y", "%grid_y")),
    across=frozenset(("%x", "%grid_x")),
    index=_INDEX,
    max_carried=_MAX_CARRIED,
)


#: Passes over kernels for CPUs, by stage.
PIPELINES: dict[str, tuple[Pass[Any], ...]] = {
    stage.name: stage.passes for stage in PIPELINE if stage.device == "cpu"
}


@dataclass(frozen=True)
class Target:
    """The width of vector code, and the parameters of the kernel.

    Attributes
    ----------
    width : int
        Lanes of a simdgroup.
    mask_bits : int
        1 where the processor has mask registers, else the width of integers to keep masks in.
    words : int
        Parameters of the kernel; the extents of their memory follow them.
    """

    width: int = 8
    mask_bits: int = 1
    words: int = 1


def run_single_passes(ir: str, name: str, passes: Sequence[str], target: Target) -> str:
    """The function `name` of a module after some passes, as text.

    Passes that give what a pass needs run before it.

    Parameters
    ----------
    passes : sequence of str
        Names, in order.

    Raises
    ------
    InvalidInput
        If the text is not a module with that function.
    InvalidIR, KeyError, Unsupported
        As `run_verified` does.
    """
    ir = flatten_address_spaces(ir)
    function = parse_input(ir, name)
    checks = [each.name for each in CHECKS]
    bounds = _bounds_context(ir, function, target) if set(passes) & set(checks) else None
    if bounds is not None:
        run_verified(function, [each for each in passes if each in checks], (CHECKS,), bounds)
        passes = [each for each in passes if each not in checks]
    callers = [other for other in function_names(ir) if f"@{name}" in callees_of(ir, other)]
    kernel = max(callers, key=lambda other: len(callees_of(ir, other)), default=name)
    abi, spec = _abi_and_spec(ir, parse_input(ir, kernel), target)
    callees = callees_of(ir, kernel)
    callee = callees.get(f"@{name}")
    if callee:
        names = list(callees)
        callees = {each: callees[each] for each in names[: names.index(callee.name)]}
    vectorize_callees(ir, abi, callees, spec)
    pipelines: tuple[tuple[Pass[Context], ...], ...]
    if callee:
        context = Context(callees, callee=callee, spec=spec_of_callee(callee, spec))
        pipelines = (LOWERING_OF_CALLEES, VECTORIZATION)
    else:
        context = Context(callees, abi=abi, spec=spec, row_parameters=_ROWS)
        pipelines = (LOWERING, COARSENING, VECTORIZATION)
    run_verified(function, passes, pipelines, context)
    if context.result is not None:
        declarations = context.result.declarations.values()
        return "\n".join((context.result.text, *declarations))
    facts = _facts(context) if bounds is None else _facts_of_accesses(bounds)
    return "\n".join((function_text(function), *facts))


def _bounds_context(ir: str, function: Function, target: Target) -> BoundsContext:
    position = {parameter.name: n for n, parameter in enumerate(function.parameters)}
    for name in (_WORDS, _MEMORY):
        if name not in position:
            raise InvalidInput(f"@{function.name} has no parameter {name}")
    interface = Interface((position[_WORDS], -1), (position[_MEMORY], -1), target.words)
    return BoundsContext(interface, variable_sizes(ir), {})


def _facts_of_accesses(context: BoundsContext) -> Iterator[str]:
    """Sites and the operations of their ranges, as comments."""
    for number, site in enumerate(context.sites):
        at = site.object.name or f"word {site.object.word}"
        terms = "".join(f" + {size} * {index.name}" for index, size in site.terms)
        accesses = f"bytes {site.first} to {site.end}{terms} of {at}"
        offset = f", range {site.node}" if site.node >= 0 else ""
        yield f"; site {number}: {accesses}{offset}"
    for number, node in enumerate(context.program.nodes):
        yield f"; range {number}: {node.op.name.lower()} i{node.width} {node.a} {node.b} {node.c}"


def _facts(context: Context) -> Iterator[str]:
    """The results of analyses, as comments."""
    divergence = context._divergence
    if divergence is not None and "divergence" in context.valid:
        values = {"uniform": list[str](), "indexed": list[str](), "varying": list[str]()}
        for name, shape in divergence.shapes.items():
            kind = "varying" if shape.is_varying else "uniform" if shape.is_uniform else "indexed"
            values[kind].append(name)
        yield from (f"; {kind}: {' '.join(names)}" for kind, names in values.items() if names)
        if divergence.branches:
            yield f"; divergent branches: {' '.join(sorted(divergence.branches))}"
        if divergence.masked:
            yield f"; masked blocks: {' '.join(sorted(divergence.masked))}"
    if context.common is not None:
        yield f"; uniform in the threadgroup: {' '.join(value.name for value in context.common)}"
    groups = dict.fromkeys(group for group, _ in context.groups.values())
    for group in groups:
        members = (f"{n}: {_shown(each)}" for n, each in sorted(group.members.items()))
        yield f"; group of {group.count} members of {group.size} bytes: {', '.join(members)}"
    for sums in dict.fromkeys(group for group, _ in context.sums.values()):
        additions = ", ".join(map(_shown, sums.members))
        yield f"; additions to addresses {sums.stride} bytes apart: {additions}"


def _shown(accesses: Sequence[Instruction]) -> str:
    return " ".join(each.result or f"store of {each.operands[0].name}" for each in accesses)


def _abi_and_spec(ir: str, function: Function, target: Target) -> tuple[KernelABI, VectorSpec]:
    """The ABI of a kernel, by the names of its parameters."""
    description = {parameter.name: n for n, parameter in enumerate(function.parameters)}
    for name in (_MEMORY, _INDEX):
        if name not in description:
            raise InvalidInput(f"@{function.name} has no parameter {name}")
    read_only = tuple(description[name] for name in _READ_ONLY if name in description)
    abi = KernelABI(function.name, read_only, description[_MEMORY], distances(ir)[0])
    waits = bool(barrier_blocks(function))
    row = consecutive(target.width)
    aligned = consecutive(target.width, target.width.bit_length() - 1)
    shapes = {"%x": aligned, "%grid_x": row, _INDEX: aligned if waits else row}
    spec = VectorSpec(
        "mtl_simdgroup" if waits else "mtl_threads",
        target.width,
        target.mask_bits,
        {description[name]: shape for name, shape in shapes.items() if name in description},
        description[_INDEX],
        has_frame=waits,
        common=(*read_only, description[_MEMORY]) if waits else (),
        is_strict=waits,
    )
    return abi, spec
