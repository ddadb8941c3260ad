"""Derivatives of simd and quad functions: a row each.

The reverse sweep runs a row in the threads that ran the function. So ``simd_sum`` of the adjoints
``{g}`` sums over the same threads.

``{x}`` is the argument, ``{b}`` a lane or a distance, ``{y}`` the result, ``{T}`` the type of the
adjoint, ``{u}`` the prefix of functions, ``{n}`` the number of lanes, ``{lane}`` the thread's own
lane and ``{active}`` the mask of the threads that run. Texts before the last one are those of
values ``{s0}``, ``{s1}``, which all threads compute.
"""

from __future__ import annotations

#: The thread's lane among those of its simdgroup, and the first lane of its group.
_FIRST = "{simd_lane} - {lane}"


def _active(lane: str) -> str:
    return f"(({{active}} >> ({_FIRST} + ({lane})) & 1) != 0)"


_DOWN = f"({{lane}} >= uint({{b}}) && {_active('{lane} - uint({b})')} ? {{s0}} : {{T}}(0))"
_UP = f"({{lane}} + uint({{b}}) < {{n}} && {_active('{lane} + uint({b})')} ? {{s0}} : {{T}}(0))"
_EXTREME = ("{u}_sum({g})", "{u}_sum({T}({x} == {y}))", "{s0} * {T}({x} == {y}) / {s1}")

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
    "shuffle": ("gather",),  # see `Propagation`
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


def lane_rule(name: str) -> tuple[str, ...] | None:
    """The row of a function; None if it has none."""
    return _ROWS.get(name[5:]) if is_lane_function(name) else None
