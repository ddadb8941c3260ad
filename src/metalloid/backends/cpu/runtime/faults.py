"""Say in words how a kernel failed on the CPU."""

from __future__ import annotations

import ctypes
import signal as signals
from collections.abc import Callable
from typing import Any

from metalloid.backends.cpu.runtime.native_library import Outcome
from metalloid.errors import KernelFault, LaunchCancelled, LaunchError, LaunchTimeout
from metalloid.runtime.launch.program import Size

# Values of mtl_outcome.status and bits of mtl_outcome.valid (runtime.h).
(
    SIGNAL,
    STACK_OVERFLOW,
    BARRIER_NOT_REACHED,
    LANE_OUT_OF_RANGE,
    NO_MEMORY,
    BARRIERS_DIFFER,
    BAD_MODULO,
    _BAD_DESCRIPTOR,  # `Kernel` has looked before
    _UNKNOWN_TICKET,
    ASSERTION,
    TIMED_OUT,
    CANCELLED,
    INTERRUPTED,  # `CpuProgram.failure` raises what Python's handler raised
    NESTED,
) = range(1, 15)
_THREADGROUP_VALID, _THREAD_VALID = 1, 2

_SIGNALS = {
    signals.SIGSEGV: "access to memory that is not the kernel's{at}",
    signals.SIGBUS: "access to memory that does not exist{at}",
    signals.SIGFPE: "integer division by zero, or of the smallest integer by -1",
    signals.SIGILL: "a trap: the kernel reached code that cannot be reached",
    signals.SIGTRAP: "a trap",
}
#: For kernels that GPUs run although not all threads reach their barriers.
_RELAXED = (
    "To run the kernel as GPUs do, set metalloid.config.strict_barriers = False "
    "(METALLOID_STRICT_BARRIERS=0)."
)


def error_of(
    outcome: Outcome,
    kernel: str,
    run_as_one: Callable[[Size], tuple[Size, Size]],
    group: Size,
) -> KernelFault | LaunchError:
    """The exception for a job that did not end well, by the kernel's fault or without it.

    Parameters
    ----------
    outcome : Outcome
    kernel : str
        Its name.
    run_as_one : callable
        The first and the last threadgroup of the launch that ran as the one at a position.
    group : tuple of int
        Size of the launch's threadgroups.
    """
    if outcome.status == NO_MEMORY:
        return LaunchError(
            f"[{kernel}] there is no memory for the stacks of a threadgroup. "
            "Use a smaller group_size or fewer threads (METALLOID_NUM_THREADS)."
        )
    if outcome.status == TIMED_OUT:
        limit = outcome.limit_ns / 1e9
        return LaunchTimeout(
            f"[{kernel}] the launch was ended after its time limit (timeout={limit:g} s); what it "
            "wrote is incomplete. Look for a loop that does not end, or raise timeout= or "
            "metalloid.config.timeout.",
            kernel=kernel,
            timeout=limit,
        )
    if outcome.status == CANCELLED:
        return LaunchCancelled(
            f"[{kernel}] the launch was cancelled after {outcome.seconds:.3g} s, by Ctrl-C or "
            "Event.cancel; what it wrote is incomplete."
        )
    if outcome.status == NESTED:
        return nested(kernel)
    reason, advice = _reason(outcome)
    threadgroup = _position(outcome.threadgroup, outcome.valid & _THREADGROUP_VALID)
    thread = _position(outcome.thread, outcome.valid & _THREAD_VALID)
    place = ""
    if threadgroup is not None:
        first, last = run_as_one(threadgroup)
        if thread is not None and first != last:
            x, y, z = (p + t // n for p, t, n in zip(first, thread, group, strict=True))
            first = last = threadgroup = (x, y, z)
            x, y, z = (t % n for t, n in zip(thread, group, strict=True))
            thread = (x, y, z)
        if first == last:
            place = f", in {f'thread {thread} of ' if thread else ''}threadgroup {threadgroup}"
        else:
            place = f", in one of the threadgroups {first} to {last}"
            threadgroup = thread = None
    return KernelFault(
        f"[{kernel}] {reason}{place}. {advice}".rstrip(),
        kernel=kernel,
        reason=reason,
        threadgroup=threadgroup,
        thread=thread,
    )


def nested(kernel: str) -> LaunchError:
    """The error for a wait that would have to wait for the kernel that it interrupts."""
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
        # Addresses that no memory can have are not reported by the processor: it says 0.
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
    if status == BARRIERS_DIFFER:
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
