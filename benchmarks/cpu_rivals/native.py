"""The cases as C: scalar loops, and vector code by hand, built when they are needed."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from metalloid.bench.cases import Case
from metalloid.compiler import clang

HERE = Path(__file__).parent
FLAGS = ["-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-shared", "-fPIC"]
#: Name of a rival, its text, and what its build needs besides.
RIVALS = {
    "loop, no vectoriser": ("scalar.c", ["-fno-vectorize", "-fno-slp-vectorize"]),
    "loop": ("scalar.c", []),
    # clang makes two registers of 32 bytes of one of 64 unless it is told not to.
    "by hand": ("by_hand.c", ["-mprefer-vector-width=512"]),
}


class CLibrary:
    """One of the C files as a shared object.

    Parameters
    ----------
    rival : str
        A key of `RIVALS`.
    folder : Path
        Where it is built.
    """

    def __init__(self, rival: str, folder: Path) -> None:
        source, flags = RIVALS[rival]
        built = folder / f"{rival.replace(' ', '_')}.so"
        done = clang.run(
            ["cc", *FLAGS, *flags, "-o", str(built), str(HERE / source), "-lm"], scratch=folder
        )
        if done.status != 0:
            raise RuntimeError(f"clang could not build {source}:\n{done.messages}")
        self._library = ctypes.CDLL(str(built))

    def launcher(self, case: Case) -> Callable[[], object] | None:
        """A function that runs a case on the calling thread; none if it is not written."""
        try:
            function = getattr(self._library, case.name)
        except AttributeError:
            return None
        function.restype = None
        words = [ctypes.c_int(math.prod(np.atleast_1d(case.threads).tolist()))]
        words += [word for argument in case.arguments for word in _words(argument)]
        return lambda: function(*words)


def _words(argument: Any) -> Iterator[Any]:
    if isinstance(argument, np.ndarray):
        yield ctypes.c_void_p(argument.ctypes.data)
    elif isinstance(argument, tuple):
        for part in argument:
            yield from _words(part)
    elif isinstance(argument, int):
        yield ctypes.c_int(argument)
    else:
        yield ctypes.c_float(argument)
