"""Arguments of ``metal_kernel`` and of its kernels, checked as MLX does, with its texts."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

_MAX_THREADS = 1024


def math_mode(options: Mapping[str, str] | None) -> Any:
    """The mode that `compile_options` state.

    Raises
    ------
    ValueError
        If there is another option, or no such mode.
    """
    if options is None:
        return "safe"
    if not isinstance(options, Mapping):
        raise ValueError("[metal_kernel] Expected `compile_options` to be a dict.")
    for key in options:
        if key != "math_mode":
            raise ValueError(f"[metal_kernel] Unknown compile option `{key}`.")
    mode = options.get("math_mode", "safe")
    if mode not in ("safe", "relaxed", "fast"):
        raise ValueError("[metal_kernel] Expected math_mode to be 'safe', 'relaxed', or 'fast'.")
    return mode


def check_list(what: str, values: Any, names: Sequence[str]) -> None:
    """Check that an argument is a list with a value for each name.

    Raises
    ------
    TypeError, ValueError
        If it is no list, or has another length.
    """
    if not isinstance(values, list | tuple):
        raise TypeError(f"__call__(): incompatible function arguments: {what} is not a list.")
    if len(values) != len(names):
        raise ValueError(
            f"[metal_kernel] Expected `{what}` to have size {len(names)} "
            f"but got size {len(values)}."
        )


def extents(what: str, values: Any) -> tuple[int, int, int]:
    """Three integers.

    Raises
    ------
    TypeError
        If they are others, or not three.
    """
    try:
        x, y, z = values
        if not type(x) is type(y) is type(z) is int:
            x, y, z = map(operator.index, values)
    except (TypeError, ValueError):
        raise TypeError(
            f"__call__(): incompatible function arguments: {what} expects three ints, got "
            f"{values!r}."
        ) from None
    return x, y, z


def threadgroup_extents(values: Any) -> tuple[int, int, int]:
    """The extents of a threadgroup.

    Raises
    ------
    ValueError
        If it has more threads than a threadgroup may have.
    """
    group = extents("threadgroup", values)
    if (size := math.prod(group)) > _MAX_THREADS:
        raise ValueError(
            f"Thread group size ({size}) is greater than  the maximum allowed threads per "
            f"threadgroup ({_MAX_THREADS})."
        )
    return group
