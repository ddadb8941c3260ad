"""The cases as C: scalar loops, and vector code by hand, built when they are needed."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import platform
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from metalloid.bench.cases import Case
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.link import shared_object
from metalloid.settings import settings

HERE = Path(__file__).parent
_X86 = platform.machine() in ("x86_64", "AMD64")
_TUNE = f"-march={settings.cpu_level or 'native'}" if _X86 else "-mcpu=native"
FLAGS = ["-O3", _TUNE, "-ffp-contract=fast", "-fno-math-errno", "-fPIC"]
#: clang makes two registers of 32 bytes of one of 64 unless it is told not to.
_FULL_REGISTERS = ["-mprefer-vector-width=512"] if _X86 else []
#: Name of a rival, its text, and what its build needs besides.
RIVALS = {
    "loop, no vectoriser": ("scalar.c", ["-fno-vectorize", "-fno-slp-vectorize"]),
    "loop": ("scalar.c", []),
    "by hand": ("by_hand.c", _FULL_REGISTERS),
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
        done = clang.run(["clang", *FLAGS, *flags, "-c", "-o", "-", str(HERE / source)])
        if done.status != 0:
            raise RuntimeError(f"clang could not build {source}:\n{done.messages}")
        built = folder / f"{rival.replace(' ', '_')}.so"
        built.write_bytes(shared_object({f"{source}.o": done.output}, built.name))
        # The C library's functions of numbers must be there before what calls them.
        ctypes.CDLL(ctypes.util.find_library("m"), mode=ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(str(built))

    def launcher(self, case: Case, variant: str = "") -> Callable[[], object] | None:
        """A function that runs a case on the calling thread; none if it is not written.

        A `variant` is the end of the function's name.
        """
        try:
            function = getattr(self._library, case.name + variant)
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
        for item in argument:
            yield from _words(item)
    elif isinstance(argument, int):
        yield ctypes.c_int(argument)
    else:
        yield ctypes.c_float(argument)
