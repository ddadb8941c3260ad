"""The prologue of a simdgroup's function: active lanes, and positions of their threads."""

from __future__ import annotations

from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.types import I32
from metalloid.compiler.vectorize.spec import VectorSpec

#: Parameters that the function of one thread has not.
LANE_COUNT, SIZE_X, SIZE_Y = "%mtl.lanes", "%mtl.size_x", "%mtl.size_y"
#: The mask of the lanes that there are.
ENTRY_MASK = "%mtl.entry_mask"


def existing_lanes(form: VectorSpec) -> list[str]:
    """The mask of the lanes that there are."""
    lanes = f"<{form.width} x i32>"
    numbers = ", ".join(f"i32 {lane}" for lane in range(form.width))
    lines = [
        f"  %mtl.a0 = insertelement {lanes} poison, i32 {LANE_COUNT}, i64 0",
        f"  %mtl.a1 = shufflevector {lanes} %mtl.a0, {lanes} poison, {lanes} zeroinitializer",
    ]
    compare = f"icmp ult {lanes} <{numbers}>, %mtl.a1"
    if form.mask_bits == 1:
        return [*lines, f"  {ENTRY_MASK} = {compare}"]
    wide = f"<{form.width} x i{form.mask_bits}>"
    return [
        *lines,
        f"  %mtl.a2 = {compare}",
        f"  {ENTRY_MASK} = sext <{form.width} x i1> %mtl.a2 to {wide}",
    ]


def positions(function: Function, form: VectorSpec) -> list[str]:
    """Positions of threads whose simdgroup covers several rows, from their index."""
    if not form.computed:
        return []
    lanes = f"<{form.width} x {I32}>"
    parameters = function.parameters
    numbers = ", ".join(f"i32 {lane}" for lane in range(form.width))
    lines: list[str] = []

    def splat(name: str, scalar: str) -> str:
        lines.append(f"  {name}.0 = insertelement {lanes} poison, i32 {scalar}, i64 0")
        lines.append(
            f"  {name} = shufflevector {lanes} {name}.0, {lanes} poison, {lanes} zeroinitializer"
        )
        return name

    def define(name: str, text: str) -> str:
        lines.append(f"  {name} = {text}")
        return name

    first = splat("%mtl.first", parameters[form.index].name)
    index = define("%mtl.index", f"add {lanes} {first}, <{numbers}>")
    width = splat("%mtl.width", SIZE_X)
    height = splat("%mtl.height", SIZE_Y)
    row = define("%mtl.row", f"udiv {lanes} {index}, {width}")
    x = define("%mtl.x", f"urem {lanes} {index}, {width}")
    y = define("%mtl.y", f"urem {lanes} {row}, {height}")
    z = define("%mtl.z", f"udiv {lanes} {row}, {height}")
    axes = form.computed
    for axis, vector in zip(axes[:3], (x, y, z), strict=True):
        define(f"{parameters[axis].name}.lanes", f"add {lanes} {vector}, zeroinitializer")
    for axis, own, vector in zip(axes[3:], axes[:3], (x, y, z), strict=True):
        # The first position of the threadgroup is what lane 0's two positions differ by.
        name = parameters[axis].name
        first = define(f"{name}.first", f"sub i32 {name}, {parameters[own].name}")
        define(f"{name}.lanes", f"add {lanes} {splat(f'{name}.o', first)}, {vector}")
    return lines
