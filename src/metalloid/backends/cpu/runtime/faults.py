"""Outcomes of failed kernels as exceptions."""

from __future__ import annotations

import ctypes
import signal as signals
from collections.abc import Callable
from typing import Any

from metalloid.backends.cpu.runtime.native_library import Outcome
from metalloid.errors import KernelFault, LaunchCancelled, LaunchError
from metalloid.runtime.launch.failures import timeout_error
from metalloid.runtime.launch.program import Size

# Values of mtl_outcome.status and bits of mtl_outcome.valid (runtime.h).
(
    SIGNAL,
    STACK_OVERFLOW,
    BARRIER_NOT_REACHED,
    LANE_OUT_OF_RANGE,
    NO_MEMORY,
    BARRIER_MISMATCH,
    BAD_MODULO,
    _BAD_DESCRIPTOR,  # checked by `Kernel`
    _UNKNOWN_TICKET,
    ASSERTION,
    TIMED_OUT,
    CANCELLED,
    INTERRUPTED,  # `CpuProgram.failure` raises what Python's handler raised
    NESTED,
    OUTSIDE,
) = range(1, 16)
_THREADGROUP_VALID, _THREAD_VALID = 1, 2

_SIGNALS = {
    signals.SIGSEGV: "access to memory that is not the kernel's{at}",
    signals.SIGBUS: "access to memory that does not exist{at}",
    signals.SIGFPE: "integer division by zero, or of the smallest integer by -1",
    signals.SIGILL: "a trap: the kernel reached code that cannot be reached",
    signals.SIGTRAP: "a trap",
}
#: Advice for kernels whose barriers not all threads reach, which GPUs run nevertheless.
_RELAXED = (
    "To run the kernel as GPUs do, set metalloid.config.strict_barriers = False "
    "(METALLOID_STRICT_BARRIERS=0)."
)


def error_of(
    outcome: Outcome,
    kernel: str,
    fused_groups: Callable[[Size], tuple[Size, Size]],
    group: Size,
    source_line: Callable[[int], tuple[str, int] | None],
    describe: Callable[[Outcome], tuple[str, tuple[str, int] | None, str]] | None = None,
) -> KernelFault | LaunchError:
    """The exception of a failed job.

    Parameters
    ----------
    outcome : Outcome
    kernel : str
        Its name.
    fused_groups : callable
        The first and the last threadgroup of the launch that were fused into the one at a position.
    group : tuple of int
        Size of the launch's threadgroups.
    source_line : callable
        File and line of the kernel's text for the address of an instruction, if they are known.
    describe : callable, optional
        Reason, file and line, and advice of an outcome, instead of those that it says itself.
    """
    if outcome.status == NO_MEMORY:
        return LaunchError(
            f"[{kernel}] there is no memory for the stacks of a threadgroup. "
            "Use a smaller group_size or fewer threads (METALLOID_NUM_THREADS)."
        )
    if outcome.status == TIMED_OUT:
        return timeout_error(kernel, outcome.limit_ns / 1e9)
    if outcome.status == CANCELLED:
        return LaunchCancelled(
            f"[{kernel}] the launch was cancelled after {outcome.seconds:.3g} s, by Ctrl-C or "
            "Event.cancel; what it wrote is incomplete."
        )
    if outcome.status == NESTED:
        return nested(kernel)
    reason, advice = _reason(outcome)
    where, threadgroup, thread = _position_text(outcome, fused_groups, group)
    # The text of an assertion has its line; vector code cannot tell which barrier was missed.
    location: tuple[str, int] | None = None
    if describe is not None:
        reason, location, advice = describe(outcome)
        if outcome.arrived:
            more = "thread" if outcome.arrived == 1 else "threads"
            where += f", and in at least {outcome.arrived} more {more}"
    has_line = (
        outcome.code and location is None and outcome.status not in (ASSERTION, BARRIER_NOT_REACHED)
    )
    if has_line:
        location = source_line(outcome.code)
    file, line = location or (None, None)
    at = f"{file}:{line}: " if file else ""
    return KernelFault(
        f"[{kernel}] {at}{reason}{where}. {advice}".rstrip().replace(". \n", ".\n"),
        kernel=kernel,
        reason=reason,
        threadgroup=threadgroup,
        thread=thread,
        file=file,
        line=line,
    )


def _position_text(
    outcome: Outcome, fused_groups: Callable[[Size], tuple[Size, Size]], group: Size
) -> tuple[str, Size | None, Size | None]:
    """Where a fault happened, as text; its threadgroup and thread, as far as they are known."""
    threadgroup = _position(outcome.threadgroup, outcome.valid & _THREADGROUP_VALID)
    thread = _position(outcome.thread, outcome.valid & _THREAD_VALID)
    if threadgroup is None:
        return "", None, thread
    first, last = fused_groups(threadgroup)
    if thread is not None and first != last:
        x, y, z = (p + t // n for p, t, n in zip(first, thread, group, strict=True))
        first = last = threadgroup = (x, y, z)
        x, y, z = (t % n for t, n in zip(thread, group, strict=True))
        thread = (x, y, z)
    if first != last:
        return f", in one of the threadgroups {first} to {last}", None, None
    within = f"thread {thread} of " if thread else ""
    return f", in {within}threadgroup {threadgroup}", threadgroup, thread


def nested(kernel: str) -> LaunchError:
    """The error of a wait in a signal handler that has interrupted a kernel."""
    return LaunchError(
        f"[{kernel}] a handler of a signal has interrupted a kernel and cannot wait for a launch. "
        "Let the handler set a flag or raise, and launch after it has returned."
    )


def _position(words: Any, valid: int) -> Size | None:
    return (words[0], words[1], words[2]) if valid else None


def _reason(outcome: Outcome) -> tuple[str, str]:
    status = outcome.status
    if status == SIGNAL:
        name = _SIGNALS.get(outcome.signal, f"signal {outcome.signal}")
        # The processor reports non-canonical addresses as 0.
        at = f" (address {outcome.address:#x})" if outcome.address else ""
        return name.format(at=at), ""
    if status == STACK_OVERFLOW:
        return "stack overflow", "Recursion has no bound, or private arrays are too large."
    if status == BARRIER_NOT_REACHED:
        return (
            "a threadgroup_barrier that only "
            f"{outcome.arrived} of {outcome.expected} threads reach",
            "Every thread of a threadgroup must reach it: no return and no branch around it. "
            f"{_RELAXED}",
        )
    if status == BARRIER_MISMATCH:
        return (
            "the threads wait at different threadgroup barriers",
            f"Every thread of a threadgroup must reach the same one. {_RELAXED}",
        )
    if status == LANE_OUT_OF_RANGE:
        return (
            f"a simdgroup function reads lane {outcome.lane}, which is outside of its simdgroup",
            "A simdgroup has 32 lanes, a quadgroup 4.",
        )
    if status == BAD_MODULO:
        return (
            f"simd_shuffle_and_fill with a modulo of {outcome.lane}",
            "It is a power of two from 2 to the width of the simdgroup.",
        )
    if status == ASSERTION:
        condition, file = (
            ctypes.string_at(text).decode("utf-8", "replace")
            for text in (outcome.condition, outcome.file)
        )
        return f"{file}:{outcome.line}: assertion failed: {condition}", ""
    return f"the runtime gave up (status {status})", ""
