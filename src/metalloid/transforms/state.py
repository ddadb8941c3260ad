"""State that functions use without an argument, such as that of random numbers.

A compiled function that uses it gets it as an input and returns it as an output.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from metalloid.arrays.array import Array


class State(ABC):
    """A state that compiled functions capture; subclasses `read` and `write` it.

    While a function is traced, the state of its thread is an expression.
    """

    def __init__(self) -> None:
        self._local = threading.local()
        STATES.append(self)
        for make_tracer in _open_traces():  # its module is imported by a function that is traced
            self._begin(make_tracer)

    @abstractmethod
    def read(self) -> Array:
        """Return the state as a contiguous array."""

    @abstractmethod
    def write(self, value: Array) -> None:
        """Replace the state."""

    @property
    def _traces(self) -> list[_TracedState]:
        if not hasattr(self._local, "traces"):
            self._local.traces = []
        traces: list[_TracedState] = self._local.traces
        return traces

    def _begin(self, make_tracer: Callable[[Array], Array]) -> None:
        self._traces.append(_TracedState(make_tracer))

    def _end(self) -> tuple[Array, Array] | None:
        trace = self._traces.pop()
        return None if trace.first is None or trace.last is None else (trace.first, trace.last)

    @property
    def traced(self) -> Array | None:
        """The state as an expression; None if no function is traced."""
        if not self._traces:
            return None
        trace = self._traces[-1]
        if trace.last is None:
            trace.first = trace.last = trace.make_tracer(self.read())
        return trace.last

    @traced.setter
    def traced(self, value: Array) -> None:
        self._traces[-1].last = value


class _TracedState:
    def __init__(self, make_tracer: Callable[[Array], Array]) -> None:
        self.make_tracer = make_tracer
        self.first: Array | None = None
        self.last: Array | None = None


STATES: list[State] = []
_thread = threading.local()


def _open_traces() -> list[Callable[[Array], Array]]:
    """The functions that make tracers, of the traces of this thread."""
    if not hasattr(_thread, "traces"):
        _thread.traces = []
    traces: list[Callable[[Array], Array]] = _thread.traces
    return traces


def is_tracing() -> bool:
    """Whether a function is being compiled in this thread."""
    return bool(_open_traces())


def begin(make_tracer: Callable[[Array], Array]) -> None:
    """Trace all states in this thread, from now on."""
    for state in STATES:
        state._begin(make_tracer)
    _open_traces().append(make_tracer)


def end() -> list[tuple[State, Array, Array]]:
    """The states that were used since `begin`, with their tracers and last values."""
    _open_traces().pop()
    used = [(state, state._end()) for state in STATES]
    return [(state, *pair) for state, pair in used if pair is not None]
