"""The outcome of compiling one kernel."""

from __future__ import annotations

import functools
import re
import resource
from pathlib import Path
from typing import NamedTuple

import metalloid as mtl
from public_tree.texts import Kernel, completed_by_host, first_line, library

_library = functools.lru_cache(maxsize=1)(library)  # the next comes from the cache
_NO_VECTOR_FORM = re.compile(r"\(no vector form: (.*)\)", re.S)


class Outcome(NamedTuple):
    """The outcome of compiling one kernel to machine code.

    Attributes
    ----------
    engine : str
        ``kernel.engine``; empty if it does not compile.
    reason : str
        Why it does not compile, or has no vector form.
    seconds : float
        Processor time that compiling took.
    not_msl : str
        Why the kernel is not MSL as it stands, if it does not compile for that reason.
    """

    engine: str
    reason: str
    seconds: float
    not_msl: str = ""

    @property
    def is_vector_code(self) -> bool:
        """Whether the vector engine runs it."""
        return self.engine.startswith("simd")


def _processor_seconds() -> float:
    """CPU time of this process and of the compilers that it has started."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def outcome(tree: Path, kernel: Kernel) -> Outcome:
    """Compile a kernel for the CPU, its function constants set if it compiles so."""
    lib = _library(tree, kernel.file)
    started = _processor_seconds()
    engine, reason, not_msl = "", "", ""
    for constants in ({constant.name: True for constant in lib.constants}, {}):
        try:
            engine, reason, not_msl = lib.function(kernel.name, constants).engine, "", ""
            break
        except mtl.MetalloidError as error:
            reason, not_msl = first_line(error), completed_by_host(tree, str(error))
    if match := _NO_VECTOR_FORM.search(engine):
        reason = match[1]
    return Outcome(engine, reason, round(_processor_seconds() - started, 2), not_msl)
