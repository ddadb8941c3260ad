"""Inference of the threadgroup size from the sizes of a kernel's arrays.

``threadgroup float parts[256]`` whose elements are ``parts[t]`` is for 256 threads: with more the
kernel would be wrong, and with fewer it would waste memory. Nothing relies on it: code for exactly
so many threads is what is worth to be compiled before there is a launch.
"""

from __future__ import annotations

import functools
import re

from metalloid.compiler.analysis.threadgroup_memory import sizes
from metalloid.compiler.ir.parser import type_of

_NAME = r'(?:[@%](?:"[^"]*"|[\w.$]+))'
_ELEMENT = re.compile(
    rf"^ +({_NAME}) = getelementptr (?:inbounds |nuw |nusw )*(\S.*?), ptr ({_NAME}), i64 ({_NAME})$"
)
_WIDENED = re.compile(rf"^ +({_NAME}) = [sz]ext (?:nneg )?i32 ({_NAME}) to i64$")
_SHIFTED = re.compile(rf"^ +({_NAME}) = lshr (?:exact )?i32 ({_NAME}), (\d+)$")
#: An array for each thread, or each simdgroup, that there can be tells nothing.
_FEWER_THAN = 1024
_LEAST = 64


def infer_workgroup_size(ir: str, own: str) -> tuple[int, int] | None:
    """Threads of a threadgroup in x and y.

    Parameters
    ----------
    ir : str
        A module without address spaces.
    own : str
        Of it, the function of one thread, whose position are its parameters ``x``, ``y`` and
        ``index``, with all its indices computed from these.
    """
    left = sizes(ir)  # bytes from an address to the end of what it is in
    # Positions by value: of which parameter, divided by what.
    factors = {f"%{axis}": (axis, 1) for axis in ("x", "y", "index")}
    extents: dict[str, int] = {}
    size_of = functools.cache(lambda text: type_of(text, ir).size)
    for line in own.splitlines() if left else ():
        if " = zext " in line or " = sext " in line:
            match = _WIDENED.match(line)
            if match and match[2] in factors:
                factors[match[1]] = factors[match[2]]
        elif " = lshr " in line:
            match = _SHIFTED.match(line)
            if match and match[2] in factors:
                axis, divisor = factors[match[2]]
                factors[match[1]] = axis, divisor << int(match[3])
        elif " = getelementptr " in line:
            match = _ELEMENT.match(line)
            if not match or match[3] not in left:
                continue
            step = size_of(match[2])
            if match[4] in factors and step:
                axis, divisor = factors[match[4]]
                count = left[match[3]] // step * divisor
                extents[axis] = min(count, extents.get(axis, count))
            left[match[1]] = step
    height = extents.get("y", 1)
    width = extents.get("x") or (extents.get("index", 0) if height == 1 else 0)
    if not width or not height:
        return None
    # Rows may be longer than needed, so that columns lie apart.
    width, height = (1 << count.bit_length() - 1 for count in (width, height))
    return (width, height) if _LEAST <= width * height < _FEWER_THAN else None
