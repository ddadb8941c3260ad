"""``numpy.polynomial``: functions that NumPy computes on the host; the classes are NumPy's own.

Examples
--------
>>> import metalloid.numpy as np
>>> np.polynomial.polynomial.polyroots(np.array([6, -5, 1]))
array([2., 3.])
"""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from metalloid.errors import unknown_attribute
from metalloid.numpy.host import host_function


def _wrapped(theirs: ModuleType, ours: ModuleType) -> ModuleType:
    """Give a module the names of NumPy's."""
    for name, value in vars(theirs).items():
        if name.startswith("_"):
            continue
        if isinstance(value, ModuleType):
            if value.__name__.startswith(np.polynomial.__name__):
                submodule = ModuleType(f"{ours.__name__}.{name}", value.__doc__)
                sys.modules[submodule.__name__] = submodule
                setattr(ours, name, _wrapped(value, submodule))
        elif isinstance(value, FunctionType):
            setattr(ours, name, host_function(value))
        elif name not in vars(ours):
            setattr(ours, name, value)
    return ours


_wrapped(np.polynomial, sys.modules[__name__])


if not TYPE_CHECKING:  # for checkers, other names are errors

    def __getattr__(name: str) -> Any:
        raise unknown_attribute(__name__, name, globals())
