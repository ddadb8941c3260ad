"""Names for what passes add to a function."""

from __future__ import annotations

from metalloid.compiler.ir.function import Function


class FreshNames:
    """Gives names that no value and no block of a function has.

    Parameters
    ----------
    function : Function
    """

    def __init__(self, function: Function) -> None:
        self._used = {value.name for value in function.parameters} | set(function.blocks)
        self._used.update(i.result for i in function.instructions())
        self._numbers: dict[str, int] = {}  # the last one of each name

    def __call__(self, preferred: str) -> str:
        """`preferred`, which begins with ``%``, or with a number after it if it is in use.

        What begins with a digit gets a prefix: LLVM takes ``%5.x`` for ``%5`` and ``.x``.
        """
        preferred = f"%mtl.{preferred[1:]}" if preferred[1].isdigit() else preferred
        name, number = preferred, self._numbers.get(preferred, 0)
        while name in self._used:
            number += 1
            name = f"{preferred}.{number}"
        self._numbers[preferred] = number
        self._used.add(name)
        return name
