"""Reports of an evaluation: kernels, launches, bytes, and why values are materialized."""

from __future__ import annotations

import math
from collections.abc import Sequence

from metalloid.arrays.codegen.kernel_source import render
from metalloid.arrays.execution.compilation import full_text
from metalloid.arrays.execution.plan_drawing import DrawnStep, draw
from metalloid.arrays.ir.linearize import LinearizedGraph
from metalloid.arrays.ir.node import BUFFER, Node
from metalloid.arrays.planning.plan import Planner, make_plan
from metalloid.arrays.planning.schedule import (
    BufferSpec,
    CallStep,
    FusedKernel,
    GeneratedKernel,
    HorizontalKernel,
    LibraryKernel,
    Output,
)
from metalloid.display import html_section


def msl(roots: Sequence[Node]) -> str:
    """The full text of each distinct kernel."""
    planner = _planned(roots)
    if planner is None:
        return "// The values are known: there is nothing to compute.\n"
    texts = [
        full_text(render(step, planner.sources, planner.traits))
        for step in planner.steps
        if not isinstance(step, CallStep)
    ]
    return "\n".join(dict.fromkeys(texts)) or "// No generated kernels: functions of the host.\n"


class Explanation(str):
    """The text of a report, which notebooks show with a drawing of the plan."""

    _drawing: str

    def __new__(cls, text: str, drawing: str = "") -> Explanation:
        """The text, with the drawing as SVG."""
        explanation = super().__new__(cls, text)
        explanation._drawing = drawing
        return explanation

    def _repr_html_(self) -> str:
        drawing = f'<div style="overflow-x: auto">{self._drawing}</div>' if self._drawing else ""
        return f"{drawing}{html_section('kernels', self)}"


def report(roots: Sequence[Node]) -> Explanation:
    """The steps in order: kernels, without the functions that they call, and bytes moved."""
    planner = _planned(roots)
    if planner is None:
        return Explanation("The values are known: there is nothing to compute.")
    lines, steps = [], []
    for number, step in enumerate(planner.steps, 1):
        if not isinstance(step, CallStep):
            text, drawn = _of_kernel(number, step, planner)
            lines.append(text)
            steps.append(drawn)
        else:
            out = ", ".join(_named(planner.sources[source]) for source in step.outs)
            name = planner.graph.nodes[step.index].data.name
            lines.append(f"{number}. {name}, a function of its own -> {out}")
            read = tuple(source for source, _ in step.args)
            steps.append(DrawnStep((f"{number}. {name}",), read, step.outs))
    if not lines:
        return Explanation("Nothing to launch: every result is a view of known values.")
    drawing = draw(steps, [_named(source) for source in planner.sources])
    return Explanation("\n\n".join(lines), drawing)


def _planned(roots: Sequence[Node]) -> Planner | None:
    missing = [root for root in roots if root.kind is not BUFFER]
    return make_plan(LinearizedGraph(missing)) if missing else None


def _of_kernel(number: int, step: GeneratedKernel, planner: Planner) -> tuple[str, DrawnStep]:
    sources = planner.sources
    rendered = render(step, sources, planner.traits)
    read = sum(_bytes(sources[source]) for source in rendered.buffers[: -rendered.written])
    grid = " x ".join(str(n) for n in rendered.threads if n != 1) or "1"
    outs = rendered.buffers[-rendered.written :]
    names = ", ".join(_named(sources[source]) for source in outs)
    reasons = ", ".join(dict.fromkeys(sources[source].reason.value for source in outs))
    if isinstance(step, LibraryKernel):
        written = sum(_bytes(sources[source]) for source in outs)
    else:
        kernels = step.kernels if isinstance(step, HorizontalKernel) else (step,)
        written = sum(
            _written(kernel, output, sources[output.out])
            for kernel in kernels
            for output in kernel.outputs
        )
    group = f", groups of {math.prod(rendered.group_size)}" if rendered.group_size else ""
    facts = f"{grid} threads{group}; reads {_size(read)}, writes {_size(written)}"
    name = f"{number}. {rendered.name}"
    text = f"{name} -> {names}: {reasons}\n   {facts}\n\n{rendered.text.rstrip()}"
    inputs = tuple(rendered.buffers[: -rendered.written])
    return text, DrawnStep((name, *facts.split("; ")), inputs, tuple(outs))


def _written(step: FusedKernel, output: Output, out: BufferSpec) -> int:
    """Bytes that the kernel stores to an output."""
    skipped = () if step.is_by_element else step.row_axes
    indices = math.prod(n for axis, n in enumerate(step.iteration_space) if axis not in skipped)
    if step.chunk:
        indices = math.prod(out.shape)
    return indices * step.ops[output.result].dtype.itemsize


def _named(source: BufferSpec) -> str:
    return f"{source.dtype}{list(source.shape)}"


def _bytes(source: BufferSpec) -> int:
    return math.prod(source.shape) * source.dtype.itemsize


def _size(nbytes: int) -> str:
    """A number of bytes in human-readable units."""
    size = float(nbytes)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
