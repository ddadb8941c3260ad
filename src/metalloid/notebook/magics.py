"""The magics ``%%metal`` and ``%metal_time``, without a need to import IPython."""

from __future__ import annotations

import argparse
import shlex
import time
from typing import Any, NoReturn

from metalloid.cli.source_options import add_source_options, source_arguments
from metalloid.compiler.frontend.unit import PROGRAM_SOURCE
from metalloid.compiler.toolchain import progress
from metalloid.errors import ArgumentError, CompileError
from metalloid.kernels.library import Library, library
from metalloid.notebook.launch_progress import LaunchProgress
from metalloid.profiler.profile import profile

_SECONDS = 0.2  # of a timed statement, about
_MAX_RUNS = 1000


class CellError(Exception):
    """A cell of Metal does not compile.

    Its text is the compiler's, with carets, instead of a traceback of Python.
    """

    def _render_traceback_(self) -> list[str]:
        """Lines that IPython shows."""
        return str(self).splitlines()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ArgumentError(f"[{self.prog}] {message}. {self.format_usage().strip()}")


def register(shell: Any) -> None:
    """Add the magics to an interactive shell of IPython, and show progress.

    That is of compilations and launches that take longer than a second.
    """

    def metal(line: str, cell: str) -> Library:
        return metal_cell(line, cell, shell.user_ns)

    def metal_time(line: str, cell: str | None = None) -> None:
        print(timed(line, cell, shell.user_ns))

    progress.shows_lines = True
    launches = LaunchProgress()
    shell.events.register("pre_run_cell", launches.start)
    shell.events.register("post_run_cell", launches.stop)
    shell.register_magic_function(metal, "cell", "metal")
    shell.register_magic_function(metal_time, "line_cell", "metal_time")


def metal_cell(line: str, cell: str, names: dict[str, Any]) -> Library:
    """Compile a cell; its kernels become functions.

    Parameters
    ----------
    line : str
        Options: ``--device``, ``-D NAME=VALUE``, ``-I FOLDER``, ``--math-mode``.
    cell : str
        The text.
    names : dict
        The namespace of the notebook.

    Raises
    ------
    CellError
        If the text does not compile.
    """
    parser = _Parser("%%metal", add_help=False)
    add_source_options(parser)
    parser.add_argument("--device")
    options = parser.parse_args(shlex.split(line))
    try:
        # A line for that of the magic: lines of messages are those of the cell.
        result = library("\n" + cell, device=options.device, **source_arguments(options))
        kernels = {name: result[name] for name in result if name.isidentifier()}
    except CompileError as error:
        raise CellError(str(error).replace(PROGRAM_SOURCE, "cell")) from None
    names.update(kernels)
    return result


def timed(line: str, cell: str | None, names: dict[str, Any]) -> str:
    """Run a statement, or a cell, several times, and return the profile as text.

    Parameters
    ----------
    line : str
        Options, ``-n RUNS``, and the statement if there is no cell.
    cell : str or None
    names : dict
        The namespace of the notebook.
    """
    parser = _Parser("%metal_time", add_help=False)
    parser.add_argument("-n", type=int, default=0, metavar="RUNS")
    words, options = line.split(maxsplit=2), argparse.Namespace(n=0)
    if words[:1] == ["-n"]:
        options, line = parser.parse_args(words[:2]), "".join(words[2:])
    code = compile(line if cell is None else cell, "<metal_time>", "exec")
    exec(code, names)  # compiles kernels
    began = time.perf_counter()
    exec(code, names)
    seconds = time.perf_counter() - began
    runs = options.n or max(1, min(_MAX_RUNS, int(_SECONDS / max(seconds, 1e-9))))
    with profile() as result:
        for _ in range(runs):
            exec(code, names)
    return f"{runs} runs\n{result}"
