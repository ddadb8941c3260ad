"""Suggestions for unknown keywords of public functions. Python has its own from 3.13 on.

The interpreter raises before the function runs, and a wrapper that catches its error would add half
to the time of ``mtl.add``. So the suggestion is added when the error is shown, as Python does for
names and attributes: calls take no longer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType, TracebackType
from typing import Any

from metalloid.errors import keyword_hint

_MESSAGE = r"([\w.<>]+)\(\) got an unexpected keyword argument '(\w+)'"
_MAX_DEPTH = 4  # attributes of a module in an expression


def show_suggestions_in(shell: Any) -> None:
    """Let errors in an interactive shell of IPython have them."""
    if shell.custom_exceptions:  # of another extension
        return

    def show(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: int | None = None) -> None:
        suggest_keyword(error)
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)

    shell.set_custom_exc((TypeError,), show)


def suggest_keyword(error: BaseException) -> None:
    """Add a note to the error of a keyword that a function of this package does not have."""
    if type(error) is not TypeError or hasattr(error, "__notes__"):
        return
    import inspect  # here, as they are for errors
    import re

    message, trace = re.fullmatch(_MESSAGE, str(error)), error.__traceback__
    if message is None or trace is None:
        return
    while trace.tb_next is not None:
        trace = trace.tb_next
    name, keyword = message.groups()
    called = list(_called(trace, name))
    if not called or not all(_is_public(each) for each in called):
        return
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = inspect.signature(called[0]).parameters.values()
    known = [p.name for p in parameters if p.kind in kinds and p.name != "self"]
    if known:
        error.add_note(keyword_hint(keyword, known))


def _called(trace: TracebackType, name: str) -> Iterator[Callable[..., Any]]:
    """The functions of a qualified name that the call of a traceback can mean."""
    from inspect import getattr_static

    frame = trace.tb_frame
    names = {*_names_of_call(frame.f_code, trace.tb_lasti), *name.split(".")}
    scope = {**frame.f_globals, **frame.f_locals}
    values, seen = [scope[each] for each in names if each in scope], set()
    for _ in range(_MAX_DEPTH):
        results: list[Any] = []
        for value in values:
            if id(value) in seen:
                continue
            seen.add(id(value))
            attributes = {*names, "__init__"} if isinstance(value, type) else names
            if isinstance(value, ModuleType):
                results += [vars(value)[each] for each in names if each in vars(value)]
            else:
                owner = value if isinstance(value, type) else type(value)
                results += [getattr_static(owner, each, None) for each in attributes]
            if callable(value) and name in (
                getattr(value, "__qualname__", ""), getattr(value, "__name__", "")
            ):  # fmt: skip
                yield value
        values = results


def _names_of_call(code: CodeType, instruction: int) -> set[str]:
    """The names in the expression of a called function; without its text, all of the code."""
    import ast
    import linecache

    first, last, begin, end = list(code.co_positions())[instruction // 2]
    if first is not None and last is not None:
        lines = [line.encode() for line in linecache.getlines(code.co_filename)[first - 1 : last]]
        if lines:
            lines[-1] = lines[-1][:end]
            lines[0] = lines[0][begin:]
            with contextlib.suppress(SyntaxError, AttributeError):  # another call than one by name
                function: Any = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
                nodes = list(ast.walk(function.func))
                names = {node.id for node in nodes if isinstance(node, ast.Name)}
                return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return {*code.co_names, *code.co_varnames, *code.co_freevars}


def _is_public(function: Any) -> bool:
    """Whether it is a function of this package."""
    return str(getattr(function, "__module__", "")).partition(".")[0] == __package__
