"""Stands in for ``utils.load`` of "How to use Apple GPUs from Python" (Guide to Hacking, 2023).

``from metalloid.compat.guide import load`` in place of ``from utils import load``. What the guide
does below that helper, with PyObjC's `Metal`, is in `metalloid.compat.Metal`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import numpy as np

import metalloid as mtl
from metalloid.compat.memory import GRANULE

__all__ = ["load"]


def load(path: str | os.PathLike[str], function_name: str) -> Callable[[np.ndarray], np.ndarray]:
    """Load a kernel from a file as a function from an array to an array of floats.

    Parameters
    ----------
    path : path-like
        A file of MSL.
    function_name : str
        A kernel with the input at ``[[buffer(0)]]`` and the output at ``[[buffer(1)]]``.

    Returns
    -------
    callable
        It runs one thread per element of its input, which is copied, and returns as many bytes as
        that has, as float32 in one dimension.

    Raises
    ------
    CompileError, FileNotFoundError
        See `metalloid.library`.
    AttributeError
        If there is no such kernel.
    ArgumentError
        If it expects more than the two buffers.

    Examples
    --------
    >>> import numpy as np
    >>> square = load("examples/square.metal", "square")
    >>> square(np.array([1, 2, 3], dtype=np.float32))
    array([1., 4., 9.], dtype=float32)
    """
    kernel = mtl.library(path=path, math_mode="fast").function(function_name)
    parameters = [(p.index, p.layout.bytes) for p in kernel.signature.buffers]
    if any(index > 1 for index, _ in parameters):
        raise mtl.ArgumentError(
            f"[load] {function_name} has parameters beyond [[buffer(1)]], to which nothing is "
            f"bound: {kernel.signature}. Use metalloid.library."
        )

    # Like Metal's, the memory is padded to whole elements of every type.
    granule = math.lcm(GRANULE, *(element for _, element in parameters))

    def run(input_array: np.ndarray) -> np.ndarray:
        nbytes = input_array.nbytes
        capacity = (nbytes // granule + 1) * granule
        memories = bytearray(capacity), bytearray(capacity)
        memories[0][:nbytes] = np.ascontiguousarray(input_array).reshape(-1).view(np.uint8).data
        bound = [memories[index] for index, _ in parameters]
        kernel(*bound, threads=input_array.size, wait=True)
        return np.frombuffer(memories[1], np.float32, nbytes // 4)

    run.__name__ = function_name
    return run
