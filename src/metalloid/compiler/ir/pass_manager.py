"""Passes and the pipelines that run them: a pipeline is a tuple of `Pass`.

The environment helps to find a defect in a pipeline, as the options of LLVM's ``opt`` do:

- ``METALLOID_VERIFY=1`` verifies the function after every pass.
- ``METALLOID_PRINT_AFTER=NAME`` (or ``all``) prints the function after a pass to stderr.
- ``METALLOID_DISABLE_PASS=NAME,NAME`` leaves out optional passes.
- ``METALLOID_PASS_LIMIT=N`` runs only the first N optional passes of the process and lists them, as
  ``-opt-bisect-limit`` does; ``tools/bisect_passes.py`` searches with it.
- ``METALLOID_TIME_PASSES=1`` prints time and instructions of each pass when the process ends.

With one of the last four, kernels are compiled although the cache has them.
"""

from __future__ import annotations

import atexit
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.printer import function_text
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.ir.verifier import verify
from metalloid.settings import settings


class PassContext(Protocol):
    """The state that the passes of a pipeline share besides the function.

    Attributes
    ----------
    valid : set of str
        The analyses and properties that hold for the function now.
    """

    valid: set[str]


C = TypeVar("C", bound=PassContext)


@dataclass(frozen=True)
class Pass(Generic[C]):
    """One step of a pipeline.

    Attributes
    ----------
    name : str
    run : callable
        Changes the function or computes an analysis into the context. It returns False if it has
        changed nothing.
    why : str
        The reason for which the pipeline has it.
    needs : tuple of str
        Analyses and properties that must hold before.
    gives : tuple of str
        Those that hold afterwards. A pass that only gives what holds already is left out.
    invalidates : tuple of str
        Those that hold no longer, unless `run` has returned False.
    optional : bool
        Whether the pipeline is correct without it.
    """

    name: str
    run: Callable[[Function, C], object]
    why: str
    needs: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    invalidates: tuple[str, ...] = ()
    optional: bool = False


class PipelineError(Exception):
    """A pass of a pipeline needs what no pass before it gives."""


@dataclass
class PassStatistics:
    """The cost of a pass in this process.

    Attributes
    ----------
    runs : int
    seconds : float
    before, after : int
        Instructions of all functions before and after it.
    """

    runs: int = 0
    seconds: float = 0.0
    before: int = 0
    after: int = 0


@dataclass
class _Process:
    """The counts over all pipelines of the process."""

    optional_runs: int = 0
    statistics: dict[str, PassStatistics] = field(default_factory=dict)


_process = _Process()


def run_passes(function: Function, passes: Sequence[Pass[C]], context: C) -> None:
    """Run passes in order on a function.

    Raises
    ------
    PipelineError
        If a pass needs what does not hold.
    InvalidIR
        If the settings ask for the verifier and a pass leaves invalid IR.
    """
    for each in passes:
        missing = [name for name in each.needs if name not in context.valid]
        if missing:
            raise PipelineError(f"{each.name} needs {', '.join(missing)}")
        if each.gives and context.valid.issuperset(each.gives):
            continue
        if each.optional and not _is_enabled(each.name, function.name):
            continue
        try:
            changed = _timed(each, function, context) is not False
        except Unsupported as error:
            error.pass_name = error.pass_name or each.name
            raise
        if changed:
            context.valid.difference_update(each.invalidates)
        context.valid.update(each.gives)
        if settings.verify_passes:
            verify(function, each.name)
        if settings.print_after in (each.name, "all"):
            print(f"; *** IR after {each.name} ***\n{function_text(function)}\n", file=sys.stderr)


def observes_passes() -> bool:
    """Whether the settings change or watch passes: cached kernels must be compiled again."""
    return bool(
        settings.print_after
        or settings.disable_pass
        or settings.pass_limit >= 0
        or settings.time_passes
    )


def _is_enabled(name: str, function: str) -> bool:
    if name in settings.disable_pass.split(","):
        return False
    limit = settings.pass_limit
    if limit < 0:
        return True
    _process.optional_runs += 1
    runs = _process.optional_runs <= limit
    done = "running" if runs else "not running"
    print(f"PASS {done} ({_process.optional_runs}) {name} on @{function}", file=sys.stderr)
    return runs


def _timed(each: Pass[C], function: Function, context: C) -> object:
    if not settings.time_passes:
        return each.run(function, context)
    if not _process.statistics:
        atexit.register(_print_statistics)
    row = _process.statistics.setdefault(each.name, PassStatistics())
    row.before += sum(1 for _ in function.instructions())
    start = time.perf_counter()
    outcome = each.run(function, context)
    row.seconds += time.perf_counter() - start
    row.after += sum(1 for _ in function.instructions())
    row.runs += 1
    return outcome


def _print_statistics() -> None:
    rows = sorted(_process.statistics.items(), key=lambda row: -row[1].seconds)
    total = sum(row.seconds for _, row in rows) or 1.0
    print(f"{'pass':28}{'runs':>6}{'ms':>10}{'share':>7}  instructions", file=sys.stderr)
    for name, row in rows:
        share = f"{row.seconds / total:.0%}"
        counts = f"{row.before} -> {row.after}"
        print(
            f"{name:28}{row.runs:6}{row.seconds * 1e3:10.1f}{share:>7}  {counts}", file=sys.stderr
        )
