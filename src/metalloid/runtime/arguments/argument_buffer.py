"""Argument buffers: structs that are encoded once for many launches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from metalloid.errors import ArgumentError
from metalloid.runtime.arguments.struct_binder import EncodedStruct, StructBinder, binder_for

if TYPE_CHECKING:
    from metalloid.kernels.kernel import Kernel


class ArgumentBuffer(EncodedStruct):
    """The value of a struct parameter, encoded before the launches that use it.

    Passing the mapping to the kernel has the same effect, but checks it at each launch.

    Parameters
    ----------
    kernel : Kernel
    parameter : str
        Name of its parameter. The argument buffer fits parameters of other kernels whose structs
        have the same members.
    values : mapping or tuple, or list of them
        Values of the members by name. The argument buffer keeps them alive.

    Raises
    ------
    ArgumentError
        If a value does not fit its member, or the parameter is not a struct.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> lib = mtl.library('''
    ... struct Pair { device float* x; float scale; };
    ... kernel void stretch(constant Pair& pair, uint i [[thread_position_in_grid]])
    ... { pair.x[i] *= pair.scale; }
    ... ''')
    >>> x = np.ones(3, np.float32)
    >>> pair = mtl.ArgumentBuffer(lib.stretch, "pair", {"x": x, "scale": 2})
    >>> for _ in range(3):
    ...     event = lib.stretch(pair, threads=3)
    >>> x.tolist()
    [8.0, 8.0, 8.0]
    """

    def __init__(self, kernel: Kernel, parameter: str, values: Mapping[str, Any] | Any) -> None:
        signature = kernel.signature
        described = next((p for p in signature.arguments if p.name == parameter), None)
        if described is None:
            raise ArgumentError(
                f"[{kernel.name}] has no parameter {parameter!r}. "
                f"Its parameters: {', '.join(p.name for p in signature.arguments) or 'none'}."
            )
        binder = binder_for(kernel.name, described, kernel.device)
        if not isinstance(binder, StructBinder):
            raise ArgumentError(
                f"[{kernel.name}] {described.label} is {described.declaration}, not a struct whose "
                "members are known."
            )
        encoded = binder.encode(values)
        super().__init__(encoded.layout, encoded.memory, encoded.arguments)
        self._name = f"{kernel.name}.{parameter}"

    def __repr__(self) -> str:
        return f"<ArgumentBuffer for {self._name}: {self.memory.nbytes} bytes>"
