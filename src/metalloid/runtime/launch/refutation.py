"""Refutation of launches: a kernel that is sure to access memory outside of an argument is not run.

Devices other than the CPU do not check accesses. But which memory a thread accesses does not depend
on the device, so the first and last threads of a launch are evaluated on the host
(`compiler.bounds.one_thread`), as far as its sizes and numbers determine them. This gives the bytes
that each argument needs at least. They are remembered, so that a repeated launch is compared only.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from metalloid.compiler.bounds.one_thread import OneThread, ThreadAccess, corner_threads
from metalloid.compiler.bounds.range_program import Variable
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.types import Unsupported
from metalloid.errors import KernelFault
from metalloid.msl.signature import Signature
from metalloid.runtime.launch.launches import Arguments
from metalloid.runtime.launch.outside import AccessedObject, describe_access, outside_error
from metalloid.runtime.launch.program import Size

#: After so many evaluations, other sizes and numbers are not looked at: they cost milliseconds.
_MAX_EVALUATIONS = 64
#: So many numbers of a launch may be limits of positions.
_MAX_LIMITS = 3
_WORD_BYTES = 8
_NEVER_ENOUGH = 2**63  # bytes that an access before the beginning needs


class ThreadCode(NamedTuple):
    """The code of one thread of a kernel.

    Attributes
    ----------
    function : Function
    position : callable
        File, line, column and text of the line of a ``!dbg`` attachment; None if unknown.
    """

    function: Function
    position: Callable[[str], Sequence[Any] | None]


class _Evaluated(NamedTuple):
    """Bytes that arguments need by position, and the accesses that need them."""

    needs: Mapping[int, int]
    by: Mapping[int, tuple[ThreadAccess, Mapping[int, int]]]


_NOTHING = _Evaluated({}, {})


class Refutation:
    """Refuses launches of one kernel.

    Parameters
    ----------
    signature : Signature
    code : callable
        The code of one thread; None where this machine cannot compile it.

    Attributes
    ----------
    read : tuple of int
        Positions of the arguments whose numbers evaluations have read; they become more.
    """

    def __init__(self, signature: Signature, code: Callable[[], ThreadCode | None]) -> None:
        self._signature, self._code = signature, functools.cache(code)
        self._thread = functools.cache(self._find_thread)
        self._known: dict[tuple[Size, Size, tuple[bytes | None, ...]], _Evaluated] = {}
        self._count = 0
        self.read: tuple[int, ...] = ()

    def check(self, arguments: Arguments, grid: Size, group: Size) -> Mapping[int, int]:
        """The bytes that each argument needs, by position, of those that need any.

        Raises
        ------
        KernelFault
            If one has fewer; nothing was run.
        """
        numbers = dict(arguments.constants)
        evaluated = self._known.get((grid, group, tuple(map(numbers.get, self.read))))
        if evaluated is None:
            evaluated = self._evaluate(numbers, grid, group)
        extents = arguments.extents
        for position, nbytes in evaluated.needs.items():
            if extents.get(position, _NEVER_ENOUGH) < nbytes:
                raise self._fault(extents[position], *evaluated.by[position])
        return evaluated.needs

    def _evaluate(self, numbers: Mapping[int, bytes], grid: Size, group: Size) -> _Evaluated:
        is_possible = self._count < _MAX_EVALUATIONS and 0 not in grid
        thread = self._thread() if is_possible else None
        if thread is None:
            return _NOTHING
        self._count += 1
        read = set(self.read)

        def number(position: int, offset: int, nbytes: int) -> int | None:
            read.add(position)
            known = numbers.get(position, b"")[offset : offset + nbytes]
            return int.from_bytes(known, "little") if len(known) == nbytes else None

        needs: dict[int, int] = {}
        by: dict[int, tuple[ThreadAccess, Mapping[int, int]]] = {}
        words = [each for each in numbers.values() if len(each) <= _WORD_BYTES][:_MAX_LIMITS]
        limits = {int.from_bytes(word, "little") for word in words}
        for variables in corner_threads(grid, group, limits):
            for access in _supported(thread.accesses(variables, number)):
                is_before = access.start < 0
                nbytes = _NEVER_ENOUGH if is_before else access.start + access.nbytes
                if nbytes > needs.get(access.word, 0):
                    needs[access.word], by[access.word] = nbytes, (access, variables)
        if len(read) > len(self.read):
            self._known.clear()  # its keys have fewer numbers
            self.read = tuple(sorted(read))
        evaluated = _Evaluated(needs, by)
        self._known[grid, group, tuple(map(numbers.get, self.read))] = evaluated
        return evaluated

    def _find_thread(self) -> OneThread | None:
        """The evaluation of a thread; None if there is no code that it can evaluate."""
        try:
            code = self._code()
            return code and OneThread(code.function, len(self._signature.sources))
        except Unsupported:
            return None

    def _fault(
        self, extent: int, access: ThreadAccess, variables: Mapping[int, int]
    ) -> KernelFault:
        """The error of the CPU for the same access."""
        code, name = self._code(), self._signature.name
        position = code.position(access.debug) if code is not None else None
        description = describe_access(
            self._signature, AccessedObject(access.word), access.start, access.nbytes, extent,
            writes=access.writes, position=position,
        )  # fmt: skip
        threadgroup, thread = (
            (variables[first], variables[first + 1], variables[first + 2])
            for first in (Variable.GROUP, Variable.POSITION)
        )
        return outside_error(name, description, threadgroup, thread)


def _supported(accesses: Iterator[ThreadAccess]) -> Iterator[ThreadAccess]:
    """Accesses up to the first instruction that the evaluation does not know."""
    with contextlib.suppress(Unsupported):
        yield from accesses
