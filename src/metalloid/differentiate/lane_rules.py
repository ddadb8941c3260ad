"""Derivatives of simd and quad functions: a row each.

The reverse sweep runs a row in the threads that ran the function. So ``simd_sum`` of the adjoints
``{g}`` sums over the same threads.

``{x}`` is the argument, ``{b}`` a lane or a distance, ``{y}`` the result, ``{T}`` the type of the
adjoint, ``{u}`` the prefix of functions, ``{n}`` the number of lanes, ``{lane}`` the thread's own
lane and ``{active}`` the mask of the threads that run. Texts before the last one are those of
values ``{s0}``, ``{s1}``, which all threads compute.

Loops go through the lanes, whose number is ``adjoint_i``, from the last one to the first. ``{r}``
and ``{w}`` are 0 before them.
"""

from __future__ import annotations

#: The thread's lane among those of its simdgroup, and the first lane of its group.
_FIRST = "{simd_lane} - {lane}"


def _active(lane: str) -> str:
    return f"(({{active}} >> ({_FIRST} + ({lane})) & 1) != 0)"


_DOWN = f"({{lane}} >= uint({{b}}) && {_active('{lane} - uint({b})')} ? {{s0}} : {{T}}(0))"
_UP = f"({{lane}} + uint({{b}}) < {{n}} && {_active('{lane} + uint({b})')} ? {{s0}} : {{T}}(0))"
_EXTREME = ("{u}_sum({g})", "{u}_sum({T}({x} == {y}))", "{s0} * {T}({x} == {y}) / {s1}")

#: The lane in a group of {m} lanes.
_IN_GROUP = "({lane} & (uint({m}) - 1))"

_ROWS: dict[str, tuple[str, ...]] = {
    "sum": ("{u}_sum({g})",),
    "max": _EXTREME,
    "min": _EXTREME,
    "product": (
        "{u}_sum({g}) * {u}_product(select({T}({x}), {T}(1), {x} == 0))",
        "{u}_sum({T}({x} == 0))",
        "{s0} * ({T}({s1} == 1) * {T}({x} == 0) + select({T}(0), 1 / {T}({x}), {s1} == 0))",
    ),
    "prefix_inclusive_sum": ("{u}_sum({g}) - {u}_prefix_exclusive_sum({g})",),
    "prefix_exclusive_sum": ("{u}_sum({g}) - {u}_prefix_inclusive_sum({g})",),
    "broadcast": ("{u}_sum({g})", "{lane} == uint({b}) ? {s0} : {T}(0)"),
    "broadcast_first": ("{u}_sum({g})", "{u}_is_first() ? {s0} : {T}(0)"),
    "shuffle_xor": (
        "{u}_shuffle_xor({g}, {b})",
        f"{_active('{lane} ^ uint({b})')} ? {{s0}} : {{T}}(0)",
    ),
    # The last lanes have their own values, as nothing wraps around.
    "shuffle_down": (
        "{u}_shuffle_up({g}, {b})",
        f"{_DOWN} + ({{lane}} + uint({{b}}) >= {{n}} ? {{g}} : {{T}}(0))",
    ),
    "shuffle_up": (
        "{u}_shuffle_down({g}, {b})",
        f"{_UP} + ({{lane}} < uint({{b}}) ? {{g}} : {{T}}(0))",
    ),
    "shuffle_rotate_down": ("{u}_shuffle_rotate_up({g}, {b})",),
    "shuffle_rotate_up": ("{u}_shuffle_rotate_down({g}, {b})",),
    # Filling values come from the other end of a group of {m} lanes.
    "shuffle_and_fill_down": (
        "{u}_shuffle_and_fill_up({g}, {T}(0), {b}, {m})",
        f"{_IN_GROUP} >= uint({{b}}) && {_active('{lane} - uint({b})')} ? {{s0}} : {{T}}(0)",
    ),
    "shuffle_and_fill_up": (
        "{u}_shuffle_and_fill_down({g}, {T}(0), {b}, {m})",
        f"{_IN_GROUP} + uint({{b}}) < uint({{m}}) && {_active('{lane} + uint({b})')}"
        " ? {s0} : {T}(0)",
    ),
}  # fmt: skip
#: The same by the filling values.
_FILLING: dict[str, tuple[str, ...]] = {
    "shuffle_and_fill_down": (
        "{u}_shuffle_and_fill_up({T}(0), {g}, {b}, {m})",
        f"{_IN_GROUP} < uint({{b}}) && {_active('{lane} + uint({m}) - uint({b})')}"
        " ? {s0} : {T}(0)",
    ),
    "shuffle_and_fill_up": (
        "{u}_shuffle_and_fill_down({T}(0), {g}, {b}, {m})",
        f"{_IN_GROUP} + uint({{b}}) >= uint({{m}}) && {_active('{lane} + uint({b}) - uint({m})')}"
        " ? {s0} : {T}(0)",
    ),
}
_OF_LANE = "{lane} == adjoint_i ? "
_TIMES = f"{{u}}_product({_OF_LANE}{{T}}({{x}}) : {{T}}(1))"
#: The statements of loops, and the adjoint.
_LOOPS: dict[str, tuple[tuple[str, ...], str]] = {
    "shuffle": (
        ("{w} = {u}_sum(uint({b}) == adjoint_i ? {g} : {T}(0));",
         "if ({lane} == adjoint_i) {r} = {w};"),
        "{r}",
    ),
    # Sums of products of the lanes after this one, so that factors may be 0.
    "prefix_inclusive_product": (
        (f"{{w}} += {{u}}_sum({_OF_LANE}{{g}} : {{T}}(0));", "if ({lane} == adjoint_i) {r} = {w};",
         f"{{w}} *= {_TIMES};"),
        "{r} * {u}_prefix_exclusive_product({T}({x}))",
    ),
    "prefix_exclusive_product": (
        ("if ({lane} == adjoint_i) {r} = {w};",
         f"{{w}} = {{u}}_sum({_OF_LANE}{{g}} : {{T}}(0)) + {_TIMES} * {{w}};"),
        "{r} * {u}_prefix_exclusive_product({T}({x}))",
    ),
}  # fmt: skip

#: Those whose results do not change with small changes of their arguments.
CONSTANT_LANE_FUNCTIONS = frozenset(
    f"{group}_{name}"
    for group in ("simd", "quad")
    for name in ("all", "any", "ballot", "is_first", "active_threads_mask", "is_helper_thread")
)


def is_lane_function(name: str) -> bool:
    """Whether a function passes values between the threads of a simdgroup."""
    return name.startswith(("simd_", "quad_"))


def lane_rule(name: str, operand: int = 0) -> tuple[str, ...] | None:
    """The row of a function by an operand; None if it has none."""
    rows = _FILLING if operand else _ROWS
    return rows.get(name[5:]) if is_lane_function(name) else None


def lane_loop(name: str) -> tuple[tuple[str, ...], str] | None:
    """The statements of the loop of a function, and its adjoint; None if it has none."""
    return _LOOPS.get(name[5:]) if is_lane_function(name) else None


def values_of_lanes(name: str) -> int:
    """The number of operands of a function that have derivatives."""
    return 2 if name[5:] in _FILLING else 1
