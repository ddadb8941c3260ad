"""``load``: a kernel of a file as a function from arrays to arrays."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from metalloid.errors import ArgumentError, UnknownFunction
from metalloid.kernels.compile_warnings import show_warnings
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.library import library
from metalloid.msl.signature import BoundParameter
from metalloid.runtime.devices.device import Device


class LoadedFunction:
    """A kernel called with its inputs only; it allocates and returns its outputs.

    Attributes
    ----------
    kernel : Kernel
        The kernel itself, for launches with a grid of one's own.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.__name__ = kernel.name

    def __call__(self, *inputs: Any) -> Any:
        """Run one thread per element of the first input.

        Parameters
        ----------
        *inputs
            Values of the leading parameters. The parameters left over are outputs: they must be
            writable ``device`` pointers. With none left over the kernel works in place.

        Returns
        -------
        ndarray or tuple of ndarray or None
            The outputs, of the dtype the signature says and the shape of the first input; a vector
        type adds an axis to the shape, or takes one away.

        Raises
        ------
        ArgumentError
            If the inputs do not fit the signature.
        """
        parameters = self.kernel.signature.arguments
        given = [self._as_argument(value) for value in inputs]
        first = next((value for value in given if isinstance(value, np.ndarray)), None)
        if first is None:
            raise ArgumentError(
                f"[{self.kernel.name}] expects an array: its shape determines the number of "
                "threads."
            )
        outputs = [self._allocate(p, self._shape(given, first)) for p in parameters[len(given) :]]
        threads = math.prod(self._shape(given, first))
        self.kernel(*given, *outputs, threads=threads, wait=True)
        return outputs[0] if len(outputs) == 1 else tuple(outputs) or None

    def _shape(self, values: list[Any], first: np.ndarray) -> tuple[int, ...]:
        """Shape of the elements of `first`: without the axis that a vector type takes up."""
        position = next(position for position, value in enumerate(values) if value is first)
        parameters = self.kernel.signature.arguments
        if position >= len(parameters) or parameters[position].layout.scalar is None:
            return first.shape
        numbers = parameters[position].layout.bytes // parameters[position].layout.scalar_bytes
        if numbers == 1:
            return first.shape
        if first.shape[-1:] == (numbers,):
            return first.shape[:-1]
        return (first.size // numbers,)

    @staticmethod
    def _as_argument(value: Any) -> Any:
        return value if np.isscalar(value) else np.ascontiguousarray(value)

    def _allocate(self, parameter: BoundParameter, shape: tuple[int, ...]) -> np.ndarray:
        layout = parameter.layout
        if layout.read_only or layout.scalar is None or layout.form != "pointer":
            raise ArgumentError(
                f"[{self.kernel.name}] got no value for {parameter.label}, which is not an output. "
                f"Signature: {self.kernel.signature}"
            )
        numbers = layout.bytes // layout.scalar_bytes
        return np.empty(shape if numbers == 1 else (*shape, numbers), layout.scalar.dtype)

    def __repr__(self) -> str:
        return f"<function {self.kernel.signature}>"


def load(
    path: str | os.PathLike[str],
    function_name: str | None = None,
    *,
    device: str | Device | None = None,
    **options: Any,
) -> LoadedFunction:
    """Load a kernel from a file as a function from arrays to arrays.

    Parameters
    ----------
    path : path-like
        A ``.metal`` file.
    function_name : str, optional
        Which kernel; not needed if the file has one only.
    device : str or Device, optional
    **options
        See `library`.

    Returns
    -------
    LoadedFunction

    Raises
    ------
    CompileError, FileNotFoundError
        See `library`.
    AttributeError
        If there is no such kernel; the text lists those there are.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> square = mtl.load("examples/square.metal")
    >>> square(np.array([1, 2, 3], dtype=np.float32))
    array([1., 4., 9.], dtype=float32)
    """
    lib = library(path=path, device=device, **options)
    show_warnings(lib.warnings, for_program=True)
    if function_name is None:
        if len(lib) != 1:
            raise UnknownFunction(
                f"[load] {os.fspath(path)!r} has {len(lib)} kernels"
                f"{': ' + ', '.join(lib.functions[:20]) if len(lib) else ''}. "
                "Choose one: load(path, function_name=...)."
            )
        function_name = lib.functions[0]
    return LoadedFunction(lib.function(function_name))
