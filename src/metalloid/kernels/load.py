"""``load``: a kernel of a file as a function from arrays to arrays."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from metalloid.errors import ArgumentError, UnknownFunction
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.library import library
from metalloid.msl.signature import BoundParameter
from metalloid.runtime.device import Device


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
            The outputs, of the dtype the signature says and the shape of the first input.

        Raises
        ------
        ArgumentError
            If the inputs do not fit the signature.
        """
        buffers = self.kernel.signature.buffers
        given = [self._as_argument(value) for value in inputs]
        first = next((value for value in given if isinstance(value, np.ndarray)), None)
        if first is None:
            raise ArgumentError(
                f"[{self.kernel.name}] wants an array: its shape says how many threads to run."
            )
        outputs = [self._allocate(parameter, first) for parameter in buffers[len(given) :]]
        elements = first.nbytes // buffers[self._position(given, first)].layout.bytes
        self.kernel(*given, *outputs, threads=elements, wait=True)
        return outputs[0] if len(outputs) == 1 else tuple(outputs) or None

    @staticmethod
    def _position(values: list[Any], wanted: np.ndarray) -> int:
        return next(place for place, value in enumerate(values) if value is wanted)

    @staticmethod
    def _as_argument(value: Any) -> Any:
        return value if np.isscalar(value) else np.ascontiguousarray(value)

    def _allocate(self, parameter: BoundParameter, first: np.ndarray) -> np.ndarray:
        layout = parameter.layout
        if layout.read_only or layout.scalar is None or layout.form != "pointer":
            raise ArgumentError(
                f"[{self.kernel.name}] got no value for {parameter.label}, which is no output. "
                f"Signature: {self.kernel.signature}"
            )
        lanes = layout.bytes // layout.scalar_bytes
        tail = (lanes,) if lanes > 1 and first.shape[-1:] != (lanes,) else ()
        return np.empty(first.shape + tail, layout.scalar.dtype)

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
    if function_name is None:
        if len(lib) != 1:
            raise UnknownFunction(
                f"[load] {os.fspath(path)!r} has {len(lib)} kernels"
                f"{': ' + ', '.join(lib.functions[:20]) if len(lib) else ''}. "
                "Say which: load(path, function_name=...)."
            )
        function_name = lib.functions[0]
    return LoadedFunction(lib.function(function_name))
