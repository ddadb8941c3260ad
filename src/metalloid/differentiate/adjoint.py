"""Adjoints of kernels: `vjp` writes the MSL text of one, and launches it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from metalloid.differentiate.adjoint_text import adjoint_text
from metalloid.differentiate.analysis.common_values import (
    depends_on_threadgroups,
    rows_are_common,
)
from metalloid.differentiate.analysis.coverage import covers
from metalloid.differentiate.analysis.ownership import max_index, owns
from metalloid.differentiate.derived import (
    Derivation,
    DerivedKernel,
    Names,
    derive,
    without_threadgroup_memory,
)
from metalloid.differentiate.program.tree import Program
from metalloid.differentiate.sweep import Sweep
from metalloid.differentiate.textures import sampler_parameters
from metalloid.errors import ArgumentError, OutOfMemory
from metalloid.kernels.kernel import Kernel
from metalloid.runtime.launch.event import Event
from metalloid.runtime.memory.buffer import Buffer
from metalloid.settings import settings

_WORD = 4
#: A tape of at most so many bytes is used for the next launch.
_MAX_TAPE = 2**25
#: Launches whose words of the tape are remembered.
_MAX_COUNTS = 64
#: Bytes of an array that such a launch may read.
_MAX_NUMBERS = 256


class AdjointKernel(DerivedKernel):
    """The adjoint of a kernel.

    Call it with the kernel's arguments, then the adjoints of the outputs, in the order of
    `outputs`, then those of the inputs, in the order of `wrt`, to which it adds.

    Attributes
    ----------
    source : str
        MSL text: that of the kernel's library, and the adjoint.
    wrt, outputs : tuple of str
        The parameters whose adjoints are computed, and whose adjoints are given.
    kernel : Kernel
        The adjoint as a kernel. Where `has_tape`, its last argument is memory for the values that
        loops go through.
    has_tape : bool
    consumed : tuple of bool
        Whether `launch` overwrites the adjoint of each output.

    Examples
    --------
    >>> import metalloid as mtl
    >>> from metalloid.differentiate import vjp
    >>> text = "kernel void twice(device const float *x, device float *y) { *y = 2 * *x; }"
    >>> lib = mtl.library(text)
    >>> adjoint = vjp(lib.twice, wrt=["x"], outputs=["y"])
    >>> adjoint.has_tape
    False
    """

    def __init__(
        self, derivation: Derivation, sweep: Sweep, primal: Kernel,
        general: Callable[
            [frozenset[str], frozenset[str], bool, frozenset[str]], AdjointKernel
        ],
    ) -> None:  # fmt: skip
        outputs = derivation.outputs
        super().__init__(
            derivation, "vjp", primal, sampler_parameters(sweep.program, sweep.samplers)
        )
        self._owned, self._bounded = sweep.owned, sweep.bounded
        #: The kernel whose threadgroups launches have that do not say which.
        has_own_groups = _is_for_gpu(primal) and not depends_on_threadgroups(sweep.program)
        self._grouped = self.kernel if has_own_groups else primal
        self._common_axes = sweep.common_axes
        self._stores, self._indices = sweep.stores, sweep._indices
        accesses = [*self._owned.values(), *self._bounded.values()]
        #: Vectors and arrays whose numbers indices follow from.
        self._arrays = self._indices.arrays.union(*(each.indices.arrays for each in accesses))
        self._known_stored: dict[Any, frozenset[str]] = {}
        self._strides = {p.name: _WORD * p.type.stride for p in sweep.program.parameters}
        self._tapes: list[Buffer] = []
        self._general = functools.cache(general)
        self.consumed = tuple(name in sweep.consumed for name in outputs)
        self.has_tape = sweep.has_tape
        self._count = derivation.function("tape") if sweep.has_tape else None
        names = [parameter.name for parameter in primal.signature.arguments]
        #: Positions of what the count reads; None if it reads threadgroup memory.
        self._counted = (
            [names.index(name) for name in sorted(sweep.counted)]
            if sweep.counted <= set(names) else None
        )  # fmt: skip
        self._known_words: dict[Any, int] = {}
        self._known_failures: dict[Any, tuple[frozenset[str], frozenset[str], bool]] = {}

    def _run(self, args: Sequence[Any], threads: Any, group_size: Any) -> Event:
        values, memory = without_threadgroup_memory(args)
        args = [*memory, *values]
        first = len(args) - len(self.outputs) - len(self.wrt)
        given = [
            np.array(arg) if is_consumed else arg
            for arg, is_consumed in zip(args[first:], self.consumed, strict=False)
        ]
        args = (*args[:first], *given, *args[first + len(given) :])
        return self.launch(args, threads, group_size)

    def launch(
        self,
        args: Sequence[Any],
        threads: int | Sequence[int],
        group_size: int | Sequence[int] | None = None,
        stored: frozenset[str] = frozenset(),
    ) -> Event:
        """Run it on adjoints of outputs that it may overwrite.

        Afterwards they are those of what the outputs held before the kernel, if the adjoint is one
        of `adjoint_of` with `in_place`.

        Parameters
        ----------
        stored : frozenset of str
            Inputs whose adjoints it stores instead of adding to them; see `storable`.
        """
        values, memory = without_threadgroup_memory(args)
        if stored:
            if not stored <= self.storable(args, threads, group_size):
                raise ArgumentError(f"[{self.kernel.name}] does not store all of {sorted(stored)}.")
            variant = self._general(frozenset(), frozenset(), False, stored)
            return variant.launch(args, threads, group_size)
        first = len(values) - len(self.outputs) - len(self.wrt)
        # Simdgroups have the same threads as in the kernel, if it depends on that.
        grid, group_size = self._grouped._check_sizes(threads, group_size)
        if self._owned or self._bounded or self._common_axes:
            key = self._key(values, grid, group_size)
            failed = self._known_failures.get(key)
            if failed is None:
                failed = self._failed_assumptions(values, grid, group_size)
                if len(self._known_failures) >= _MAX_COUNTS:
                    self._known_failures.clear()
                self._known_failures[key] = failed
            if any(failed):
                return self._general(*failed, frozenset()).launch(args, threads, group_size)
        if self._count is None:
            args = self._with_settings(args)
            return self.kernel(*args, threads=threads, group_size=group_size)
        extents = (threads,) if isinstance(threads, int) else tuple(threads)
        count, budget = math.prod(extents), settings.tape_bytes
        stride, least = 1, None
        while True:
            words = self._words([*values[:first], *memory], stride, threads, group_size)
            nbytes = max(1, words) * _WORD * count
            if nbytes <= budget:
                break
            if least is not None and nbytes >= least:
                raise OutOfMemory(
                    f"[{self.kernel.name}] the tape needs {least} bytes, more than "
                    f"config.tape_bytes ({budget}). Raise it, or launch fewer threads at a time."
                )
            least, stride = nbytes, 2 * stride
        tape = self._tapes.pop() if self._tapes else None  # fresh memory takes time to clear
        if tape is None or tape.nbytes < nbytes:
            tape = Buffer(nbytes, self.kernel.device)
        event = self.kernel(
            *self._with_settings(args), tape, np.uint32(stride),
            threads=threads, group_size=group_size,
        )  # fmt: skip
        if tape.nbytes <= _MAX_TAPE and not self._tapes:
            self._tapes.append(tape)
        return event

    def storable(
        self,
        args: Sequence[Any],
        threads: int | Sequence[int],
        group_size: int | Sequence[int] | None = None,
    ) -> frozenset[str]:
        """The inputs of whose adjoints a launch can store each element, exactly once.

        What their memory held before has no effect then.

        Parameters
        ----------
        args : sequence
            As of `launch`.
        """
        if not self._stores:
            return frozenset()
        values, _ = without_threadgroup_memory(args)
        grid, group = self._grouped._check_sizes(threads, group_size)
        key = self._key(values, grid, group)
        if key not in self._known_stored:
            if len(self._known_stored) >= _MAX_COUNTS:
                self._known_stored.clear()
            self._known_stored[key] = self._find_storable(values, grid, group)
        return self._known_stored[key]

    def _find_storable(
        self, args: Sequence[Any], grid: Sequence[int], group: Sequence[int]
    ) -> frozenset[str]:
        names = [parameter.name for parameter in self._primal.signature.arguments]
        values = dict(zip(names, args, strict=False))
        shadows = dict(zip(self.wrt, args[len(args) - len(self.wrt) :], strict=False))
        result = set()
        for name, stores in self._stores.items():
            nbytes, stride = getattr(shadows.get(name), "nbytes", 0), self._strides[name]
            if nbytes % stride == 0 and covers(
                stores, self._indices, values, grid, group, nbytes // stride
            ):
                result.add(name)
        return frozenset(result)

    def _failed_assumptions(
        self, args: Sequence[Any], grid: Sequence[int], group_size: Sequence[int]
    ) -> tuple[frozenset[str], frozenset[str], bool]:
        """Buffers of which threads share elements, and that may be read outside of their memory.

        And whether simdgroups have threads of several rows.
        """
        names = [parameter.name for parameter in self._primal.signature.arguments]
        values = dict(zip(names, args, strict=False))
        shadows = dict(zip(self.wrt, args[len(args) - len(self.wrt) :], strict=False))
        shared = {n for n, each in self._owned.items() if not owns(each, values, grid, group_size)}
        guarded = set()
        for name, each in self._bounded.items():
            highest = max_index(each, values, grid, group_size)
            nbytes = (0 if highest is None else highest + 1) * self._strides[name]
            if highest is None or getattr(shadows.get(name), "nbytes", 0) < nbytes:
                guarded.add(name)
        has_rows = not rows_are_common(self._common_axes, grid, group_size)
        return frozenset(shared), frozenset(guarded), has_rows

    def _key(self, values: Sequence[Any], grid: Sequence[int], group: Sequence[int]) -> Any:
        """The numbers that the indices of a launch follow from."""
        names = [parameter.name for parameter in self._primal.signature.arguments]
        digests = [
            (_digest_of_numbers if name in self._arrays else _digest)(value)
            for name, value in zip_longest(names, values)
        ]
        return (*digests, *grid, *group)

    def _words(self, args: Sequence[Any], stride: int, threads: Any, group_size: Any) -> int:
        """Words of the tape of a thread, with a checkpoint each `stride` iterations of loops.

        They are counted once for launches that give the count the same numbers.
        """
        numbers = None if self._counted is None else [_bytes(args[k]) for k in self._counted]
        if numbers is None or None in numbers:
            return self._count_words(args, stride, threads, group_size)
        key = *numbers, stride, np.array(threads).tobytes(), np.array(group_size).tobytes()
        if key not in self._known_words:
            if len(self._known_words) >= _MAX_COUNTS:
                self._known_words.clear()
            self._known_words[key] = self._count_words(args, stride, threads, group_size)
        return self._known_words[key]

    def _count_words(self, args: Sequence[Any], stride: int, threads: Any, group_size: Any) -> int:
        words = Buffer(np.zeros(1, np.uint32), self.kernel.device)
        assert self._count is not None
        self._count(
            *args, words, np.uint32(stride), threads=threads, group_size=group_size, wait=True
        )
        return int(np.asarray(words)[0])


def vjp(
    kernel: Kernel,
    wrt: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    deterministic: bool = False,
) -> AdjointKernel:
    """The adjoint of a kernel: from adjoints of its outputs to those of its inputs.

    Parameters
    ----------
    kernel : Kernel
    wrt : sequence of str, optional
        Parameters whose adjoints are wanted: pointers or references to floating-point numbers, or
        to vectors of them, which the kernel only reads. By default all of them.
    outputs : sequence of str, optional
        Parameters whose adjoints are given: those that the kernel writes. By default all of them.
    deterministic : bool, optional
        Whether to refuse kernels for which the last bits of the result would differ between runs.

    Returns
    -------
    AdjointKernel

    Raises
    ------
    CompileError
        At the line of what is not differentiated.
    ArgumentError
        If there is no such parameter.

    Notes
    -----
    Threads keep their order and their indices: the adjoint runs on the same grid. Adjoints of
    inputs are added by atomic functions, so their order, and the last bits of sums, differ between
    runs. Where each thread of a launch reads elements of its own (``x[i]``, ``x[3 * i + 1]``,
    ``x[row * n + k]`` with ``k < n``), they are added without. Adjoints must not overlap.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np
    >>> from metalloid.differentiate import vjp
    >>> lib = mtl.library('''
    ... kernel void square(device const float *x, device float *y,
    ...                    uint i [[thread_position_in_grid]]) {
    ...   y[i] = x[i] * x[i];
    ... }''', device="cpu")
    >>> adjoint = vjp(lib.square, wrt=["x"], outputs=["y"])
    >>> x, d_x = np.array([1, 2, 3], np.float32), np.zeros(3, np.float32)
    >>> event = adjoint(x, np.empty(3, np.float32), np.ones(3, np.float32), d_x, threads=3)
    >>> d_x
    array([2., 4., 6.], dtype=float32)
    """
    return adjoint_of(kernel, wrt, outputs, deterministic=deterministic)


def adjoint_of(
    kernel: Kernel,
    wrt: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    in_place: bool = False,
    deterministic: bool = False,
    shared: frozenset[str] = frozenset(),
    guarded: frozenset[str] = frozenset(),
    sums_rows: bool | None = None,
    stored: frozenset[str] = frozenset(),
) -> AdjointKernel:
    """The adjoint of a kernel; see `vjp`.

    Parameters
    ----------
    in_place : bool
        Whether its `launch` turns the adjoints of outputs into those of what they held before: 0
        where the kernel stores, the same where it adds.
    deterministic : bool
    shared : frozenset of str
        Buffers of which several threads may read the same element.
    guarded : frozenset of str
        Buffers that the kernel may read where they have no element.
    sums_rows : bool, optional
        Whether the threads of a simdgroup, if they are of one row of threads, may add their sum to
        an element. By default on GPUs: for CPUs, the compiler does so.
    stored : frozenset of str
        Inputs whose adjoints are stored, not added to: each element once.
    """
    sweep: Sweep
    is_for_gpu = _is_for_gpu(kernel)
    if sums_rows is None:
        sums_rows = is_for_gpu

    def write(program: Program, name: str, wrt: Names, outputs: Names) -> str:
        nonlocal sweep
        sweep = Sweep(program, wrt, outputs, deterministic, shared, guarded, sums_rows, stored)
        if in_place:
            sweep.consumed = set(outputs)
        return adjoint_text(sweep, name, is_for_gpu)

    def general(
        more: frozenset[str], outside: frozenset[str], has_rows: bool, written: frozenset[str]
    ) -> AdjointKernel:
        return adjoint_of(
            kernel, wrt, outputs, in_place, deterministic, shared | more, guarded | outside,
            sums_rows and not has_rows, stored | written,
        )  # fmt: skip

    derivation = derive(kernel, wrt, outputs, write)
    return AdjointKernel(derivation, sweep, kernel, general)


def _is_for_gpu(kernel: Kernel) -> bool:
    """Whether the adjoint of a kernel has the text that is faster on GPUs."""
    return kernel.device.memory != "host"


def _bytes(argument: Any) -> bytes | None:
    """The numbers of an argument; None if there are many, or on a device."""
    if isinstance(argument, np.ndarray) and argument.nbytes > _MAX_NUMBERS:
        return None
    is_number = isinstance(argument, bool | int | float | np.generic | np.ndarray)
    return np.asarray(argument).tobytes() if is_number else None


def _digest(argument: Any) -> Any:
    """The number that an argument is, or the size of its memory, from which indices follow."""
    if isinstance(argument, bool | int | float):
        return argument
    if isinstance(argument, np.generic | np.ndarray) and argument.size == 1:
        return argument.tobytes()
    return (argument.nbytes,) if hasattr(argument, "nbytes") else object()  # like no other


def _digest_of_numbers(argument: Any) -> Any:
    """All numbers of an argument, if indices follow from them."""
    numbers = _bytes(argument)
    return object() if numbers is None else numbers
