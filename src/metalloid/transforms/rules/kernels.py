"""Derivatives of kernels that are called on arrays.

The tangents of a call are the primitive ``kernel_derivative``, which is linear in the tangents of
the arguments. Reverse mode transposes it by the adjoint that `metalloid.differentiate` writes, or
by the rule that the user has stated.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import launch_call
from metalloid.arrays.functions.creation import zeros
from metalloid.arrays.interop.dlpack import owned_copy
from metalloid.arrays.interop.traced_launches import TracedLaunch
from metalloid.arrays.ir.dtypes import float32, kind_of
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import GET_TUPLE_ITEM, Node, broadcast, cast
from metalloid.arrays.ir.operands import to_node
from metalloid.arrays.ir.primitives import bind, implement
from metalloid.differentiate.adjoint import AdjointKernel, adjoint_of
from metalloid.differentiate.derived import written_parameters
from metalloid.errors import CompileError, TraceError
from metalloid.kernels.kernel import Kernel
from metalloid.transforms.rules.registry import Rule, define_rule
from metalloid.transforms.tangents import zeros_like

Nodes = Sequence[Node | None]


@dataclass(frozen=True)
class _Derivative:
    """The derivative of a call.

    Attributes
    ----------
    call : KernelCall or TracedLaunch
    wrt, outputs : tuple of int
        Operands and results, which have tangents.
    carried : tuple of int
        Operands with tangents that results in `outputs` update.
    """

    call: Any
    wrt: tuple[int, ...]
    outputs: tuple[int, ...]
    carried: tuple[int, ...]

    @property
    def linear(self) -> tuple[int, ...]:
        """The operands with tangents."""
        return (*self.wrt, *self.carried)


def tangents_of_call(node: Node, tangents: Nodes) -> Nodes:
    """Tangents of the results of a call, of which at least one operand has one.

    Raises
    ------
    TraceError
        If the call is that of an adjoint.
    CompileError
        At the line of what is not differentiated.
    """
    call = node.data
    if not hasattr(call, "vjp_rule"):
        raise TraceError(
            f"[grad] second derivatives of kernels are not supported, got the call {call.name!r}. "
            "State the derivative with define_vjp, by functions of arrays."
        )
    results: list[Node | None] = [None] * len(call.results)
    known = dict(zip(call.operand_names, tangents, strict=True))
    smooth = [t is not None and kind_of(t.dtype) == "f" for t in tangents]
    if not any(smooth):
        return results
    if call.vjp_rule is None and isinstance(call, TracedLaunch):
        written = set(_written(call.kernel))
        for k, name in enumerate(call.result_names):
            if name not in written:
                results[k] = known[name]
    else:
        written = set(call.result_names)
    names = call.operand_names
    wrt = tuple(k for k, name in enumerate(names) if smooth[k] and name not in written)
    carried = tuple(k for k, name in enumerate(names) if smooth[k] and name in written)
    outputs = tuple(
        k
        for k, (name, (dtype, _)) in enumerate(zip(call.result_names, call.results, strict=True))
        if name in written and kind_of(dtype) == "f"
    )
    if not outputs:
        return results
    derivative = _Derivative(call, wrt, outputs, carried)
    operands = [*node.args]
    if call.vjp_rule is not None:
        for k, (dtype, shape) in enumerate(call.results):
            result = Node(GET_TUPLE_ITEM, k, (node,), dtype, shape, node.device)
            call.add_result(result, k)
            operands.append(result)
    else:
        _adjoint(derivative, node.args)  # raises what it refuses at the call
    operands += [t for k in derivative.linear if (t := tangents[k]) is not None]
    types = (call.results[k] for k in outputs)
    for k, result in zip(outputs, bind("kernel_derivative", operands, (derivative,), *types),
                         strict=True):  # fmt: skip
        results[k] = result
    return results


@functools.lru_cache(maxsize=64)
def _written(kernel: Kernel) -> tuple[str, ...]:
    return tuple(written_parameters(kernel))


_adjoint_of = functools.lru_cache(maxsize=64)(adjoint_of)


def _adjoint(derivative: _Derivative, args: Sequence[Node]) -> AdjointKernel:
    """The adjoint of the kernel of a call."""
    call = derivative.call
    instance = call.instance([np.empty(arg.shape, arg.dtype) for arg in args], args[0].device)
    wrt = tuple(call.operand_names[k] for k in derivative.wrt)
    outputs = tuple(call.result_names[k] for k in derivative.outputs)
    try:
        return _adjoint_of(instance.kernel, wrt, outputs, bool(derivative.carried))
    except CompileError as error:
        raise instance.at_user_lines(error) from None


def _run_adjoint(*operands: Any) -> list[Memory]:
    """Launch the adjoint; the operands have values."""
    *nodes, derivative = operands
    call, device = derivative.call, nodes[0].device
    count = len(nodes) - len(derivative.outputs)
    args = nodes[:count]
    adjoint = _adjoint(derivative, args)
    cotangents = [Array(owned_copy(node)) for node in nodes[count:]]
    shadows = [
        Array(owned_copy(zeros(args[k].shape, dtype=float32, device=device)._node))
        for k in derivative.wrt
    ]
    arrays = list(map(Array, args))
    instance = call.instance(arrays, device)
    adjoint.launch([*instance.arguments, *cotangents, *shadows], instance.threads, instance.group)
    names = [call.result_names[k] for k in derivative.outputs]
    shadows += [cotangents[names.index(call.operand_names[k])] for k in derivative.carried]
    return [memory for shadow in shadows if (memory := shadow._node.memory) is not None]


def _transpose(cotangents: Nodes, args: Nodes, params: Any) -> Nodes:
    (derivative,) = params
    call, linear = derivative.call, derivative.linear
    count = len(call.operand_names)
    own = [arg for arg in args[:count] if arg is not None]
    known = dict(zip(derivative.outputs, cotangents, strict=True))
    shares: list[Node]
    if call.vjp_rule is not None:
        results = [arg for arg in args[count : count + len(call.results)] if arg is not None]
        given = [known.get(k) or zeros_like(result) for k, result in enumerate(results)]
        shares = _by_rule(call, own, given, results, linear)
    else:
        given = [
            zeros(call.results[k][1], dtype=float32, device=own[0].device)._node
            if cotangent is None
            else cast(cotangent, float32)
            for k, cotangent in known.items()
        ]
        types = [(float32, own[k].shape) for k in linear]
        adjoints = launch_call(_run_adjoint, [*own, *given], (derivative,), *types)
        shares = [cast(each, own[k].dtype) for k, each in zip(linear, adjoints, strict=True)]
    return [*(None,) * (len(args) - len(linear)), *shares]


def _by_rule(
    call: Any, args: Sequence[Node], cotangents: Sequence[Node], results: Sequence[Node],
    wrt: Sequence[int],
) -> list[Node]:  # fmt: skip
    inputs = tuple(call.inputs(list(map(Array, args))))
    returned = call.vjp_rule(inputs, tuple(map(Array, cotangents)), tuple(map(Array, results)))
    shares = list(returned)
    if len(shares) != len(args):
        raise ValueError(
            f"[define_vjp] the rule of {call.name!r} must return {len(args)} cotangents, one for "
            f"each array of the arguments, got {len(shares)}."
        )
    nodes = []
    for k in wrt:
        share, arg = shares[k], args[k]
        node = zeros_like(arg) if share is None else to_node(share, "define_vjp", device=arg.device)
        nodes.append(broadcast(cast(node, arg.dtype), arg.shape))
    return nodes


def _refuse(why: str, *_: Any) -> Any:
    raise TraceError(why)


implement(
    "kernel_derivative",
    functools.partial(
        _refuse, "[jvp] kernels have no forward mode. State one with custom_function."
    ),
)
define_rule(
    "kernel_derivative",
    Rule(
        functools.partial(
            _refuse, "[grad] second derivatives of kernels are not supported. State one with "
            "custom_function.",
        ),
        functools.partial(
            _refuse, "[vmap] kernels have no rule for vmap. State one with custom_function."
        ),
        _transpose,
    ),
)  # fmt: skip
