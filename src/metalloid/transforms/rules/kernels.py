"""Derivatives of kernels that are called on arrays.

The tangents of a call are the primitive ``kernel_derivative``, which is linear in the tangents of
the arguments. Forward mode evaluates it by the kernel of tangents that `metalloid.differentiate`
writes. Reverse mode transposes it by the adjoint, or by the rule that the user has stated. The
kernel of tangents has derivatives itself, so that ``grad`` and ``jvp`` of ``jvp`` go through it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.execution.calls import launch_call
from metalloid.arrays.functions.creation import zeros
from metalloid.arrays.interop.dlpack import owned_copy
from metalloid.arrays.interop.traced_launches import LaunchInstance, TracedLaunch
from metalloid.arrays.ir.dtypes import float32, kind_of
from metalloid.arrays.ir.memory import Memory
from metalloid.arrays.ir.node import GET_TUPLE_ITEM, Node, broadcast, cast, fresh
from metalloid.arrays.ir.operands import to_node
from metalloid.arrays.ir.primitives import bind, implement
from metalloid.differentiate.adjoint import AdjointKernel, adjoint_of
from metalloid.differentiate.derived import written_parameters
from metalloid.errors import CompileError, TraceError
from metalloid.kernels.kernel import Kernel
from metalloid.runtime.devices.device import Device
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
            "[grad] second derivatives of kernels by grad of grad are not supported, got the call "
            f"{call.name!r}. Take grad of jvp, or state the derivative with define_vjp."
        )
    results: list[Node | None] = [None] * len(call.results)
    known = dict(zip(call.operand_names, tangents, strict=True))
    if not any(map(_is_smooth, tangents)):
        return results
    if call.vjp_rule is None and isinstance(call, TracedLaunch):
        written = set(_written(call.kernel))
        for k, name in enumerate(call.result_names):
            if name not in written:
                results[k] = known[name]
    else:
        written = set(call.result_names)
    outputs = tuple(
        k
        for k, (name, (dtype, _)) in enumerate(zip(call.result_names, call.results, strict=True))
        if name in written and kind_of(dtype) == "f"
    )
    if not outputs:
        return results
    derivative = _derivative_of(call, tangents, written, outputs)
    operands = [*node.args]
    if call.vjp_rule is not None:
        for k, (dtype, shape) in enumerate(call.results):
            result = Node(GET_TUPLE_ITEM, k, (node,), dtype, shape, node.device)
            call.add_result(result, k)
            operands.append(result)
    else:
        _adjoint(derivative, node.args)  # raises what it refuses at the call
    for k, tangent in zip(outputs, _bound(derivative, operands, tangents), strict=True):
        results[k] = tangent
    return results


def _is_smooth(tangent: Node | None) -> bool:
    return tangent is not None and kind_of(tangent.dtype) == "f"


def _derivative_of(
    call: Any, tangents: Nodes, written: Collection[str], outputs: tuple[int, ...]
) -> _Derivative:
    smooth = [k for k, tangent in enumerate(tangents) if _is_smooth(tangent)]
    wrt = tuple(k for k in smooth if call.operand_names[k] not in written)
    carried = tuple(k for k in smooth if call.operand_names[k] in written)
    return _Derivative(call, wrt, outputs, carried)


def _bound(derivative: _Derivative, operands: Sequence[Node], tangents: Nodes) -> Nodes:
    along = [t for k in derivative.linear if (t := tangents[k]) is not None]
    types = (derivative.call.results[k] for k in derivative.outputs)
    return bind("kernel_derivative", [*operands, *along], (derivative,), *types)


@dataclass(frozen=True)
class _TangentCall:
    """The launch of the kernel of tangents of a call, as a call that has derivatives itself.

    Its operands are those of the call, tangents of `wrt`, and memory for those of `outputs`; its
    results are those of the call, and the tangents.
    """

    derivative: _Derivative
    vjp_rule = None

    @property
    def name(self) -> str:
        return f"{self.derivative.call.name}_jvp"

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """The parameters with tangents, and those of the tangents of outputs."""
        call = self.derivative.call
        wrt = [f"dot_{call.operand_names[k]}" for k in self.derivative.wrt]
        return wrt, [f"dot_{call.result_names[k]}" for k in self.derivative.outputs]

    @property
    def operand_names(self) -> list[str]:
        wrt, outputs = self.names
        return [*self.derivative.call.operand_names, *wrt, *outputs]

    @property
    def result_names(self) -> list[str]:
        return [*self.derivative.call.result_names, *self.names[1]]

    @property
    def tangents(self) -> list[Any]:
        """Types and shapes of tangents."""
        return [(float32, self.derivative.call.results[k][1]) for k in self.derivative.outputs]

    @property
    def results(self) -> list[Any]:
        return [*self.derivative.call.results, *self.tangents]

    def instance(self, arrays: Sequence[Any], device: Device) -> LaunchInstance:
        """The kernel that is launched for arrays."""
        call, (wrt, outputs) = self.derivative.call, self.names
        count = len(call.operand_names)
        inner = call.instance(arrays[:count], device)
        chosen = (tuple(name.removeprefix("dot_") for name in each) for each in (wrt, outputs))
        tangent = inner.kernel.jvp(*chosen)
        arguments = [*inner.arguments, *arrays[count:]]
        return LaunchInstance(tangent.kernel, arguments, inner.threads, inner.group)

    def operands(self, args: Sequence[Node], along: Mapping[int, Node]) -> list[Node]:
        """The operands; `along` has the tangents of the call's operands by their positions."""
        call, derivative = self.derivative.call, self.derivative
        carried = {call.operand_names[k]: along[k] for k in derivative.carried}
        memory = [
            carried.get(call.result_names[k])
            or zeros(call.results[k][1], dtype=float32, device=args[0].device)._node
            for k in derivative.outputs
        ]
        given = [cast(each, float32) for each in (*(along[k] for k in derivative.wrt), *memory)]
        return [*args, *given]


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


def _run_tangents(*nodes: Any) -> list[Memory]:
    """Launch a kernel of tangents; the operands have values."""
    *args, call = nodes
    copies = [
        Array(owned_copy(arg) if name in call.result_names else arg)
        for name, arg in zip(call.operand_names, args, strict=True)
    ]
    instance = call.instance(copies, args[0].device)
    threads, group = instance.threads, instance.group
    instance.kernel(*instance.arguments, threads=threads, group_size=group, wait=True)
    results = copies[len(copies) - len(call.tangents) :]
    return [memory for array in results if (memory := array._node.memory) is not None]


def _forward(*operands: Any) -> tuple[Node, ...]:
    """Tangents of the outputs."""
    *nodes, derivative = operands
    inner = derivative.call
    if inner.vjp_rule is not None:
        raise TraceError(
            f"[jvp] define_vjp has stated the derivative of {inner.name!r} for reverse mode only. "
            "State its tangents with custom_function."
        )
    call, count = _TangentCall(derivative), len(inner.operand_names)
    given = call.operands(nodes[:count], dict(zip(derivative.linear, nodes[count:], strict=True)))
    results = launch_call(_run_tangents, given, (call,), *call.tangents)
    types = (inner.results[k][0] for k in derivative.outputs)
    return tuple(cast(each, dtype) for each, dtype in zip(results, types, strict=True))


def _tangents_of_derivative(
    args: Sequence[Node], params: Any, results: Sequence[Node], tangents: Nodes
) -> Nodes:
    """Tangents of tangents."""
    (inner,) = params
    if inner.call.vjp_rule is not None:
        raise TraceError(
            f"[grad] define_vjp has stated the first derivative of {inner.call.name!r} only. State "
            "the others with custom_function."
        )
    call, count = _TangentCall(inner), len(inner.call.operand_names)
    along = dict(zip(inner.linear, args[count:], strict=True))
    operands = call.operands(args[:count], along)
    known = dict(zip(inner.linear, tangents[count:], strict=True))
    memory = {inner.call.operand_names[k]: known[k] for k in inner.carried}
    outputs = [memory.get(inner.call.result_names[k]) for k in inner.outputs]
    given = [*tangents[:count], *(known[k] for k in inner.wrt), *outputs]
    floats = tuple(k for k, (dtype, _) in enumerate(call.results) if kind_of(dtype) == "f")
    derivative = _derivative_of(call, given, call.result_names, floats)
    pushed = _bound(derivative, operands, given)[-len(results) :]
    return [
        None if each is None else cast(each, result.dtype)
        for each, result in zip(pushed, results, strict=True)
    ]


def _run_adjoint(*operands: Any) -> list[Memory]:
    """Launch the adjoint; the operands have values."""
    *nodes, derivative = operands
    call, device = derivative.call, nodes[0].device
    count = len(nodes) - len(derivative.outputs)
    args = nodes[:count]
    adjoint = _adjoint(derivative, args)
    cotangents = [
        Array(owned_copy(node) if is_consumed else node)
        for node, is_consumed in zip(nodes[count:], adjoint.consumed, strict=True)
    ]
    shadows = [Array(fresh(float32, args[k].shape, device)) for k in derivative.wrt]
    arrays = list(map(Array, args))
    instance = call.instance(arrays, device)
    given, size = [*instance.arguments, *cotangents], (instance.threads, instance.group)
    stored = adjoint.storable([*given, *shadows], *size)
    for n, name in enumerate(adjoint.wrt):
        if name not in stored:
            clear = zeros(shadows[n].shape, dtype=float32, device=device)
            shadows[n] = Array(owned_copy(clear._node))
    adjoint.launch([*given, *shadows], *size, stored)
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


def _refuse_batch(*_: Any) -> Any:
    raise TraceError("[vmap] kernels have no rule for vmap. State one with custom_function.")


implement("kernel_derivative", _forward)
define_rule("kernel_derivative", Rule(_tangents_of_derivative, _refuse_batch, _transpose))
