"""``ReductionKernel``: map every element, reduce along axes, and finish what is left."""

from __future__ import annotations

import functools
from typing import Any

from metalloid.compiler.frontend.unit import Bounds
from metalloid.compiler.toolchain.target import MathMode
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

#: As in reduction_kernel.metal.
_THREADS, _ROW_CHUNK, _COLUMN_CHUNK = 256, 256 * 16, 32
_THREAD_IDS = ("uint i [[thread_position_in_grid]]",)


class ReductionKernel(AxisKernel):
    """A kernel defined by the expressions of a reduction.

    Parameters
    ----------
    in_params, out_params : str
        As for `ElementwiseKernel`.
    map_expr : str
        MSL expression of the inputs' elements: ``"x * x"``. ``i`` is the index of the element.
    reduce_expr : str
        Associative and commutative expression of ``a`` and ``b``: ``"a + b"``.
    post_map_expr : str
        Statement that computes the outputs from the result ``a``: ``"y = sqrt(a)"``.
    identity : str or number
        Identity of the reduction: ``"0"``. It is the result for an empty axis.
    name : str, optional
    reduce_type : str, optional
        Type of ``a`` and ``b``; by default that of the first output. It may be a struct of the
        preamble.
    preamble : str, optional
    math_mode : {"safe", "relaxed", "fast"}, optional
    bounds : {"checked", "unchecked"}, optional
        As for `ElementwiseKernel`.

    Notes
    -----
    Elements are combined in a tree, so rounding errors grow with the logarithm of their number.
    Threadgroups reduce rows, single threads reduce columns and short rows, in as many passes as
    needed.

    The interface is that of CuPy's ``ReductionKernel``; the text is MSL.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> norm = mtl.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    >>> x = np.array([[3, 4], [5, 12]], np.float32)
    >>> norm(x, axis=1)
    array([ 5., 13.], dtype=float32)
    >>> norm(x, keepdims=True).shape
    (1, 1)
    """

    _combining = "reduce_expr"

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        preamble: str = "",
        *,
        math_mode: MathMode = "safe",
        bounds: Bounds | None = None,
    ) -> None:
        expressions = {
            "map_expr": map_expr, "reduce_expr": reduce_expr, "post_map_expr": post_map_expr,
            "identity": str(identity),
        }  # fmt: skip
        super().__init__(
            in_params, out_params, expressions, name, reduce_type, preamble, math_mode, bounds
        )

    def __call__(
        self, *args: Any, axis: Any = None, keepdims: bool = False, out: Any = None
    ) -> Any:
        """Reduce along `axis`.

        Parameters
        ----------
        *args
            A value for each input, and optionally an array for each output.
        axis : int or tuple of int, optional
            All axes without.
        keepdims : bool, optional
            Keep the reduced axes, with one element each.
        out : array or tuple of arrays, optional
            The outputs.

        Returns
        -------
        ndarray or Buffer, or a tuple of them
            The outputs: the caller's own, or new ones (`Buffer` if an input is one).

        Raises
        ------
        ArgumentError
            If the arguments do not fit; nothing was run. It is a TypeError and a ValueError.
        CompileError
            With the lines of the expressions and of the preamble.
        """
        inputs, given, types, plan = self._arguments(args, axis, out)
        full = tuple(1 if a in plan.along else n for a, n in enumerate(plan.shape))
        shape = full if keepdims else plan.outer_shape
        outputs = self._outputs(inputs, given, shape, types)
        if plan.rows:
            every = range(len(plan.shape))
            outer = [a for a in every if a not in plan.along]
            for parameter, output in zip(self.out_params, outputs, strict=True):
                own = dict(zip(outer if not keepdims else every, output.strides, strict=True))
                strides = tuple(0 if a in plan.along else own[a] for a in every)
                plan.add_output(parameter.name, output, strides)
            self._launch(inputs, outputs, plan, types)
        return result_of(outputs, inputs)

    def _launch(
        self, inputs: list[Operand], outputs: list[Operand], plan: AxisPlan, types: Types
    ) -> None:
        generated = _generate(self._text([*inputs, *outputs], plan, types))
        kernels = self._kernels(generated, [*inputs, *outputs])
        values = input_values(inputs, plan)
        partials, count = self._pass(kernels, "map", values, plan.rows, plan.count, plan)
        while count > 1:
            partials, count = self._pass(kernels, "next", [partials], plan.rows, count, plan)
        kernels("finish")(
            partials, *(output.bound for output in outputs), layout_value(plan.layout),
            threads=plan.rows,
        )  # fmt: skip
        for output in outputs:
            output.write_back()

    def _pass(
        self, kernels: Kernels, step: str, values: list[Any], rows: int, count: int, plan: AxisPlan
    ) -> tuple[Buffer, int]:
        """Reduce each row to one number per chunk; those numbers, and how many a row has."""
        along_rows = count > _COLUMN_CHUNK and (step == "next" or plan.is_contiguous)
        chunks = chunks_of(count, _ROW_CHUNK)
        if not along_rows or rows * chunks * _THREADS > MAX_ELEMENTS:
            along_rows, chunks = False, chunks_of(count, _COLUMN_CHUNK)
        kernel = kernels(f"{step}_{'rows' if along_rows else 'columns'}")
        partials = temporary(kernel, "partials", rows * chunks)
        threads = rows * chunks * (_THREADS if along_rows else 1)
        extra = [] if along_rows else [rows]
        kernel(
            *values, count, chunks, *extra, partials,
            threads=threads, group_size=_THREADS if along_rows else None,
        )  # fmt: skip
        return partials, chunks


@functools.lru_cache(maxsize=256)
def _generate(text: AxisText) -> GeneratedKernel:
    """Write the kernels around the expressions."""
    finish = kernel_text(
        f"{text.name}_finish",
        ["device const reduce_type *partials", *(o.declaration() for o in text.outputs),
         "constant Layout &layout_value"],
        ["uint outer [[thread_position_in_grid]]"],
        "  const constant Layout *layout = &layout_value;\n"
        "  const reduce_type a = partials[outer];\n" + text.output_elements((text.axes[0], 0)),
    )  # fmt: skip
    kernels = "".join(
        _pass_text(f"{text.name}_{step}", parameters, value)
        for step, parameters, value in passes(text.inputs, "Partials")
    )  # fmt: skip
    return text.generated("reduction_kernel.metal", kernels, finish)


def _pass_text(name: str, parameters: list[str], value: str) -> str:
    partials = "device reduce_type *partials"
    rows = (
        f"{value}  threadgroup reduce_type shared[reduction_threads];\n"
        "  reduce_rows(inputs, partials, count, chunks, shared, group, thread_index);\n"
    )
    columns = f"{value}  reduce_columns(inputs, partials, count, chunks, columns, i);\n"
    return kernel_text(
        f"{name}_rows", [*parameters, *SIZES, partials], GROUP_IDS, rows, "reduction_threads"
    ) + kernel_text(
        f"{name}_columns", [*parameters, *SIZES, "constant uint &columns", partials], _THREAD_IDS,
        columns,
    )  # fmt: skip
