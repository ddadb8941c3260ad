"""The passes that check a kernel's accesses, in order, and why each is there.

They run on the IR that both engines of the CPU start from, before the pipeline of an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from metalloid.compiler.bounds.callees import CheckedFunction, check_callees
from metalloid.compiler.bounds.check_accesses import check_accesses
from metalloid.compiler.bounds.interface import Interface
from metalloid.compiler.bounds.objects import Addresses
from metalloid.compiler.bounds.range_program import RangeProgram
from metalloid.compiler.bounds.ranges import Ranges
from metalloid.compiler.bounds.sites import Site, sites_of
from metalloid.compiler.ir.function import Function, Value
from metalloid.compiler.ir.pass_manager import Pass, run_passes
from metalloid.compiler.ir.types import Unsupported


def _every_site(number: int, is_provable: bool) -> bool:
    return True


@dataclass
class BoundsContext:
    """The state that the passes share besides the function.

    Attributes
    ----------
    interface : Interface
        How the function reaches the words of a launch.
    sizes : mapping
        Bytes of the module's variables.
    known_bytes : mapping
        Bytes that each launch has at least, by position of the parameter.
    is_checked : callable
        Whether to check a site, from its number and whether a launch may prove it.
    has_ranges : bool
        Whether launches may prove sites.
    called : sequence of Function
        That the function calls, and these call, as `called_functions` gives them.
    thread : Value or None
        The index of the thread, if reports of these functions say it.
    valid : set of str
    sites : list of Site
        Those of the function, then those of each that it calls.
    program : RangeProgram
        The ranges of their offsets.
    """

    interface: Interface
    sizes: Mapping[str, int]
    known_bytes: Mapping[int, int]
    is_checked: Callable[[int, bool], bool] = _every_site
    has_ranges: bool = True
    called: Sequence[Function] = ()
    thread: Value | None = None
    valid: set[str] = field(default_factory=set)
    sites: list[Site] = field(default_factory=list)
    program: RangeProgram = field(default_factory=RangeProgram)
    _functions: list[CheckedFunction] = field(default_factory=list)

    @property
    def functions(self) -> list[CheckedFunction]:
        """The function, and those that it calls."""
        assert self._functions, "the pass `access-sites` computes them"
        return self._functions


def _access_sites(function: Function, context: BoundsContext) -> None:
    addresses = Addresses(function, context.interface, context.sizes)
    sites = list(sites_of(function, addresses, context.known_bytes))
    kernel = CheckedFunction(function, addresses, context.interface, sites, context.thread)
    context._functions = [kernel, *check_callees(kernel, context.called, context.sizes)]
    context.sites = [site for each in context.functions for site in each.sites]


def _offset_ranges(function: Function, context: BoundsContext) -> None:
    if not context.has_ranges:
        return
    kernel = context.functions[0]
    try:
        ranges = Ranges(function, kernel.addresses)
    except Unsupported:  # control flow that the vectoriser refuses
        return
    context.program = ranges.program
    for site in kernel.sites:
        if site.object.is_word or site.object.nbytes:  # whose extents a launch knows
            total = ranges.range_of_sum(site.terms, site.block)
            is_bounded = total < 0 or ranges.program.is_bounded(total)
            site.node = total if is_bounded else -2


def _check_accesses(function: Function, context: BoundsContext) -> bool:
    number = 0
    for each in context.functions:
        numbered = enumerate(each.sites, start=number)
        number += len(each.sites)
        check_accesses(each, [(n, s) for n, s in numbered if context.is_checked(n, s.node != -2)])
    return number > 0


#: From the function of a kernel as clang leaves it, to one whose accesses are checked.
CHECKS: tuple[Pass[BoundsContext], ...] = (
    Pass(
        "access-sites", _access_sites,
        "which object each access is made for, and which accesses one check covers",
        gives=("sites",),
    ),
    Pass(
        "offset-ranges", _offset_ranges,
        "intervals of offsets, from which a launch may prove that accesses need no checks",
        needs=("sites",), optional=True,
    ),
    Pass(
        "check-accesses", _check_accesses,
        "an access outside of its object does not happen, and ends the launch",
        needs=("sites",), invalidates=("sites",),
    ),
)  # fmt: skip


def add_checks(function: Function, context: BoundsContext) -> None:
    """Check the accesses of a function; the context tells sites and ranges afterwards."""
    run_passes(function, CHECKS, context)
