"""Single passes on functions in textual IR, whatever their pipeline: ``metalloid passes``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.parser import first_bad_line, parse_function
from metalloid.compiler.ir.pass_manager import C, Pass, run_passes
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.ir.verifier import verify
from metalloid.settings import settings


class InvalidInput(Exception):
    """The text is not a function that passes can run on; the message says where and why."""


def parse_input(ir: str, name: str, retain_hints: bool = False) -> Function:
    """The function `name` of a module that a user wrote.

    Raises
    ------
    InvalidInput
        If the text is no module with that function.
    """
    try:
        bad = first_bad_line(ir, name)
        if bad is None:
            return parse_function(ir, name, retain_hints)
    except Unsupported as error:
        raise InvalidInput(str(error)) from error
    raise InvalidInput(f"line {bad[0]} is not an instruction: {bad[1]}")


def run_verified(
    function: Function, names: Sequence[str], pipelines: Iterable[Sequence[Pass[C]]], context: C
) -> None:
    """Run passes by name, and those that they need; verify the function before and after each.

    Raises
    ------
    InvalidIR
        If the function is not well-formed, before or after a pass.
    KeyError
        If no pipeline has a pass of that name.
    Unsupported
        If a pass cannot treat the function.
    """
    verify(function)
    with settings.scope(verify_passes=True):
        run_passes(function, list(with_needed(names, pipelines)), context)


def with_needed(names: Sequence[str], pipelines: Iterable[Sequence[Pass[C]]]) -> Iterator[Pass[C]]:
    """Passes by name, each after those that give what it needs.

    Raises
    ------
    KeyError
        If no pipeline has a pass of that name.
    """
    passes = [each for pipeline in pipelines for each in pipeline]
    by_name = {each.name: each for each in reversed(passes)}
    valid: set[str] = set()

    def run(each: Pass[C]) -> Iterator[Pass[C]]:
        for need in each.needs:
            if need not in valid:
                yield from run(next(other for other in passes if need in other.gives))
        valid.difference_update(each.invalidates)
        valid.update(each.gives)
        yield each

    for name in names:
        yield from run(by_name[name])
