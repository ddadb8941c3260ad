"""``ScanKernel``: map every element, and combine each with all before it along an axis."""

from __future__ import annotations

import functools
from typing import Any

from metalloid.compiler.frontend.unit import Bounds
from metalloid.compiler.toolchain.target import MathMode
from metalloid.errors import ArgumentError
from metalloid.kernels.builders.axes import AxisPlan
from metalloid.kernels.builders.axis_kernel import (
    AxisKernel,
    Kernels,
    chunks_of,
    input_values,
    temporary,
)
from metalloid.kernels.builders.axis_text import (
    GROUP_IDS,
    SIZES,
    AxisText,
    kernel_text,
    passes,
)
from metalloid.kernels.builders.builder import Types, result_of
from metalloid.kernels.builders.builder_text import layout_value
from metalloid.kernels.generated_kernel import GeneratedKernel
from metalloid.kernels.operands import MAX_ELEMENTS, Operand
from metalloid.runtime.memory.buffer import Buffer

#: As in scan_kernel.metal.
_THREADS, _CHUNK = 256, 256 * 8
_THREAD_IDS = ("uint index [[thread_position_in_grid]]",)


class ScanKernel(AxisKernel):
    """A kernel defined by the expressions of a prefix scan.

    Parameters
    ----------
    in_params, out_params : str
        As for `ElementwiseKernel`.
    map_expr : str
        MSL expression of the inputs' elements: ``"x"``. ``i`` is the index of the element.
    scan_expr : str
        Associative expression of the preceding ``a`` and the following ``b``: ``"a + b"``.
    identity : str or number
        Identity of the scan: ``"0"``. An exclusive scan starts with it.
    inclusive : bool, optional
        Whether the scan at an element includes the element (default).
    post_map_expr : str, optional
        Statement that computes the outputs from the result ``a``; by default the first output is
        ``a``.
    name : str, optional
    scan_type : str, optional
        Type of ``a`` and ``b``; by default that of the first output. It may be a struct of the
        preamble.
    preamble : str, optional
    math_mode : {"safe", "relaxed", "fast"}, optional
    bounds : {"checked", "unchecked"}, optional
        As for `ElementwiseKernel`.

    Notes
    -----
    Elements are combined in order, in a tree, so rounding errors grow with the logarithm of their
    number. Threadgroups scan chunks, and then the totals of the chunks.

    The expressions are those of PyOpenCL's ``GenericScanKernel``; the interface is
    `ReductionKernel`'s.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> cumsum = mtl.ScanKernel("T x", "T y", "x", "a + b", "0")
    >>> cumsum(np.array([[1, 2, 3], [10, 20, 30]], np.int32), axis=1)
    array([[ 1,  3,  6],
           [10, 30, 60]], dtype=int32)
    """

    _combining = "scan_expr"

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        scan_expr: str,
        identity: Any,
        inclusive: bool = True,
        *,
        post_map_expr: str | None = None,
        name: str = "scan_kernel",
        scan_type: str | None = None,
        preamble: str = "",
        math_mode: MathMode = "safe",
        bounds: Bounds | None = None,
    ) -> None:
        expressions = {
            "map_expr": map_expr, "scan_expr": scan_expr, "identity": str(identity),
        }  # fmt: skip
        super().__init__(
            in_params, out_params, expressions, name, scan_type, preamble, math_mode, bounds
        )
        self.inclusive = bool(inclusive)
        self.expressions["post_map_expr"] = post_map_expr or f"{self.out_params[0].name} = a"

    def __call__(self, *args: Any, axis: int | None = None, out: Any = None) -> Any:
        """Scan along `axis`.

        Parameters
        ----------
        *args
            A value for each input, and optionally an array for each output.
        axis : int, optional
            Needed where the inputs have more than one.
        out : array or tuple of arrays, optional
            The outputs.

        Returns
        -------
        ndarray or Buffer, or a tuple of them
            The outputs, of the inputs' shape: the caller's own, or new ones (`Buffer` if an input
            is one).

        Raises
        ------
        ArgumentError
            If the arguments do not fit; nothing was run. It is a TypeError and a ValueError.
        CompileError
            With the lines of the expressions and of the preamble.
        """
        inputs, given, types, plan = self._arguments(args, axis, out)
        if len(plan.along) != 1:
            raise ArgumentError(
                f"[{self.name}] the inputs have the shape {plan.shape}; axis={axis!r} must "
                "name one of its axes."
            )
        outputs = self._outputs(inputs, given, plan.shape, types)
        if plan.rows and plan.count:
            for parameter, output in zip(self.out_params, outputs, strict=True):
                plan.add_output(parameter.name, output, output.strides)
            self._launch(inputs, outputs, plan, types)
        return result_of(outputs, inputs)

    def _launch(
        self, inputs: list[Operand], outputs: list[Operand], plan: AxisPlan, types: Types
    ) -> None:
        if plan.rows * chunks_of(plan.count, _CHUNK) * _THREADS > MAX_ELEMENTS:
            raise ArgumentError(
                f"[{self.name}] {plan.rows} scans of {plan.count} elements exceed the size "
                "of a grid. Scan the array in several calls."
            )
        generated = _generate(self._text([*inputs, *outputs], plan, types), self.inclusive)
        kernels = self._kernels(generated, [*inputs, *outputs])
        scanned, totals, chunks = self._scan(
            kernels, "map", input_values(inputs, plan), plan.rows, plan.count
        )
        kernels("finish")(
            scanned, totals, plan.count, chunks, *(output.bound for output in outputs),
            layout_value(plan.layout), threads=plan.rows * plan.count,
        )  # fmt: skip
        for output in outputs:
            output.write_back()

    def _scan(
        self, kernels: Kernels, step: str, values: list[Any], rows: int, count: int
    ) -> tuple[Buffer, Buffer, int]:
        """Scan the chunks of each row; their elements, the scanned totals, and how many."""
        chunks = chunks_of(count, _CHUNK)
        kernel = kernels(step)
        scanned = temporary(kernel, "scanned", rows * count)
        totals = temporary(kernel, "totals", rows * chunks)
        kernel(
            *values, count, chunks, scanned, totals,
            threads=rows * chunks * _THREADS, group_size=_THREADS,
        )  # fmt: skip
        if chunks > 1:
            chunk_sums, above, more = self._scan(kernels, "next", [totals], rows, chunks)
            kernels("join")(chunk_sums, above, chunks, more, totals, threads=rows * chunks)
        return scanned, totals, chunks


@functools.lru_cache(maxsize=256)
def _generate(text: AxisText, inclusive: bool) -> GeneratedKernel:
    """Write the kernels around the expressions."""
    results = ["device reduce_type *scanned", "device reduce_type *totals"]
    levels = ["device const reduce_type *scanned", "device const reduce_type *totals"]
    scans = "".join(
        kernel_text(
            f"{text.name}_{step}", [*parameters, *SIZES, *results], GROUP_IDS,
            f"{value}  threadgroup reduce_type shared[scan_threads];\n"
            "  scan_rows(inputs, scanned, totals, count, chunks, shared, group, thread_index);\n",
            "scan_threads",
        )
        for step, parameters, value in passes(text.inputs, "Totals")
    )  # fmt: skip
    join = kernel_text(
        f"{text.name}_join", [*levels, *SIZES, "device reduce_type *joined"], _THREAD_IDS,
        "  joined[index] =\n"
        "      scanned_up_to(scanned, totals, index / count, index % count, count, chunks);\n",
    )  # fmt: skip
    value = "scanned_up_to(scanned, totals, outer, along, count, chunks)"
    if not inclusive:
        value = f"along == 0 ? identity() : {value.replace('along', 'along - 1')}"
    finish = kernel_text(
        f"{text.name}_finish",
        [
            *levels,
            *SIZES,
            *(o.declaration() for o in text.outputs),
            "constant Layout &layout_value",
        ],
        _THREAD_IDS,
        "  const constant Layout *layout = &layout_value;\n"
        "  const uint outer = index / count;\n  const uint along = index % count;\n"
        f"  const reduce_type a = {value};\n" + text.output_elements(text.axes),
    )
    return text.generated("scan_kernel.metal", scans + join, finish)
