"""Functions and variables that a kernel uses, and that nothing defines.

A kernel is linked only with what our runtime offers. Without that rule a declaration such as
``extern "C" int system(const char*)`` would bind to the C library.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

from metalloid.compiler.frontend.debug_info import location_of
from metalloid.compiler.frontend.translate import read_source
from metalloid.compiler.frontend.unit import TranslationUnit
from metalloid.errors import CompileError
from metalloid.msl.clang_messages import SourceMap
from metalloid.msl.diagnostics import Diagnostic, report
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.tokens import TokenStream

_NAME = r'@("(?:[^"\\]|\\.)*"|[\w.$]+)'
_DECLARED = re.compile(rf"^declare [^\n]*?{_NAME}\(", re.M)
_EXTERNAL = re.compile(rf"^{_NAME} = external [^\n]*?(?:global|constant) ", re.M)
#: C++ writes ``f(float)`` as ``_Z1ff`` and ``a::f()`` as ``_ZN1a1fEv``: lengths before names.
_MANGLED = re.compile(r"_Z(N?)([KVrR]*)L?(?=\d)")
#: What the compiler itself may call; kernels can do no harm with them.
MEMORY_FUNCTIONS = frozenset({"memcpy", "memmove", "memset", "memcmp"})


def undefined_names(ir: str, is_offered: Callable[[str], bool]) -> Iterator[str]:
    r"""Names that a module uses and lacks, by the linker's spelling.

    Parameters
    ----------
    is_offered : callable
        Whether the runtime has a function of the name.

    Examples
    --------
    >>> ir = "declare i32 @system(ptr)\ndeclare float @llvm.fabs.f32(float)\n"
    >>> list(undefined_names(ir, lambda name: False))
    ['system']
    """
    for match in _DECLARED.finditer(ir):
        name = match[1].strip('"')
        if not name.startswith("llvm.") and not is_offered(name):
            yield name.removeprefix("\\01")
    for match in _EXTERNAL.finditer(ir):
        if not is_offered(match[1].strip('"')):
            yield match[1].strip('"')


def demangled(symbol: str) -> str:
    """The name in the text of a function that the linker knows by `symbol`.

    Examples
    --------
    >>> demangled("_Z7nowheref"), demangled("_ZN4math5solveIfEEvT_"), demangled("system")
    ('nowhere', 'math::solve', 'system')
    """
    head = _MANGLED.match(symbol)
    if head is None:
        return symbol
    names, rest = [], symbol[head.end() :]
    while digits := re.match(r"\d+", rest):
        length = int(digits[0])
        names.append(rest[digits.end() : digits.end() + length])
        rest = rest[digits.end() + length :]
        if not head[1]:
            break
    return "::".join(names)


def undefined(
    symbol: str, unit: TranslationUnit, entry: EntryPoint, compile_with_lines: Callable[[], str]
) -> CompileError:
    """The error for a name that nothing defines, at the line that uses it.

    Parameters
    ----------
    compile_with_lines : callable
        Gives the kernel's IR with debug lines.
    """
    name = demangled(symbol)
    message = (
        f"undefined: '{name}' is declared and used, but this text does not define it. A kernel can "
        "call its own functions and those of Metal's standard library only."
    )
    file, line, column = _first_use(symbol, compile_with_lines()) or (entry.file, entry.line, 1)
    source_map = SourceMap(TokenStream(unit.text), functools.partial(read_source, unit.sources))
    localised = source_map.localise(Diagnostic("error", file, line, column, message))
    return CompileError(report([localised]), [localised])


def _first_use(symbol: str, ir: str) -> tuple[str, int, int] | None:
    """File, line and column of the first instruction that names a symbol."""
    use = re.compile(rf'^ [^\n]*@"?(?:\\01)?{re.escape(symbol)}\b[^\n]*!dbg !(\d+)', re.M)
    match = use.search(ir)
    localised = location_of(ir, f"!{match[1]}") if match else None
    return (localised.file, localised.line, localised.column) if localised else None
