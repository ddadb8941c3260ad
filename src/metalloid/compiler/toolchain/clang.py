"""Find clang (the one inside the ``ziglang`` package) and run it."""

from __future__ import annotations

import functools
import importlib.util
import math
import os
import sys
from pathlib import Path
from typing import NamedTuple

from metalloid.errors import DeviceUnavailable
from metalloid.settings import settings

_SIGKILL = 9  # of POSIX


class Outcome(NamedTuple):
    """The outcome of a compiler run: exit status, standard output, diagnostics."""

    status: int
    output: bytes
    messages: str

    @property
    def text(self) -> str:
        """The output as text."""
        return self.output.decode("utf-8", "replace")


def executable() -> Path:
    """The zig executable that holds clang and lld.

    Raises
    ------
    DeviceUnavailable
        If there is none: nothing can be compiled.
    """
    return _find(settings.clang)


def is_available() -> bool:
    """Whether there is a compiler."""
    try:
        executable()
    except DeviceUnavailable:
        return False
    return True


@functools.cache
def _find(configured: str) -> Path:
    if configured:
        path = Path(configured).expanduser()
    else:
        package = importlib.util.find_spec("ziglang")
        if package is None or not package.submodule_search_locations:
            raise DeviceUnavailable(
                "[compiler] no clang: the package 'ziglang' is not installed. "
                "Run: pip install ziglang"
            )
        path = Path(package.submodule_search_locations[0]) / "zig"
        if os.name == "nt":
            path = path.with_suffix(".exe")
    if not path.is_file():
        raise DeviceUnavailable(
            f"[compiler] no clang: {path} does not exist. "
            "Set METALLOID_CLANG to a zig executable, or reinstall ziglang."
        )
    return path


@functools.cache
def version() -> str:
    """The compiler's own words about its version."""
    return run(["clang", "--version"]).text.splitlines()[0]


class OutOfTime(Exception):
    """A compiler has used the processor time that it was given."""


def run(
    arguments: list[str],
    text: str | bytes = b"",
    scratch: str | os.PathLike[str] | None = None,
    seconds: float = 0.0,
) -> Outcome:
    """Run a tool of the zig executable with `text` as its input.

    Parameters
    ----------
    arguments : list of str
        The tool (``clang``, ``ld.lld``, ``cc``) and its arguments.
    scratch : path-like, optional
        Folder for the caches that ``cc`` cannot do without.
    seconds : float
        Of the processor that it may take; 0: as long as it takes. Only Linux can limit it.

    Raises
    ------
    OutOfTime
        If it takes longer.
    """
    import subprocess  # here, as what has been compiled runs without it

    environment = _environment()
    if scratch is not None:
        folder = os.fspath(scratch)
        environment |= {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    with subprocess.Popen(
        [str(executable()), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        if sys.platform == "linux" and seconds:
            import resource

            limit = math.ceil(seconds)
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit, limit))
        try:
            output, messages = process.communicate(data)
        except BaseException:
            process.kill()
            raise
    if seconds and process.returncode == -_SIGKILL:
        raise OutOfTime
    return Outcome(process.returncode, output, messages.decode("utf-8", "replace"))


def _environment() -> dict[str, str]:
    """The process's environment without what would give clang the user's headers and flags."""
    hidden = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "CCC_OVERRIDE_OPTIONS")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return environment | {"LC_ALL": "C"}
