"""Words of C++ that MSL does not have, wherever they stand."""

from __future__ import annotations

from pathlib import Path

from metalloid.msl.entry_point_parser import parse_line_marker
from metalloid.msl.portable.text import Text
from metalloid.msl.tokens import TokenStream

#: What Metal's compiler says, and what to write.
_WORDS = {
    "double": "'double' is not supported in Metal; use float",
    "goto": "'goto' is not supported in Metal; use loops and conditions",
    "thread_local": "'thread_local' is not supported in Metal; variables of a function are "
    "each thread's own",
    "register": "Metal does not support the 'register' storage class specifier; leave it out",
    "virtual": "virtual functions are not supported in Metal; use templates",
    "dynamic_cast": "'dynamic_cast' is not supported in Metal; use static_cast",
    "typeid": "'typeid' is not supported in Metal; use the traits of <metal_type_traits>",
    "try": "exceptions are not supported in Metal; return an error code",
    "throw": "exceptions are not supported in Metal; return an error code",
}
_ALLOCATIONS = {
    "new": "'new' is not supported in Metal; declare a variable, or pass a buffer",
    "delete": "'delete' is not supported in Metal; declare a variable, or pass a buffer",
}
_NOEXCEPT = "the noexcept operator is not supported in Metal"
_ASSEMBLY = (
    "assembly statements are not supported in Metal: Apple publishes no instruction set of its GPUs"
)
_CPP_HEADERS = {
    "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstdlib", "cstring",
    "initializer_list", "limits", "type_traits", "utility",
}  # fmt: skip
_OWN = "'{}' is metalloid's own; Metal does not know it"
_OWN_PREFIXES = ("__msl_", "METALLOID_")
#: What macros of Metal's standard library have become: `assert`.
_EXPANDED = {"__msl_assertion_failed"}


def check_words(text: Text) -> None:
    """Report every word that MSL does not have."""
    stream = text.stream
    for position, token in enumerate(stream.tokens):
        if token in _WORDS:
            text.report(position, _WORDS[token])
        elif token in _ALLOCATIONS and not _is_member_name(stream, position):
            text.report(position, _ALLOCATIONS[token])
        elif token == "noexcept" and _is_operator(stream, position):
            text.report(position, _NOEXCEPT)
        elif token in ("asm", "__asm", "__asm__") and _is_statement(stream, position):
            text.report(position, _ASSEMBLY)
        elif token in _EXPANDED:
            continue
        elif token.startswith(_OWN_PREFIXES) or _is_our_namespace(stream, position):
            text.report(position, _OWN.format(token))


def check_includes(text: Text, stubs: Path) -> None:
    """Report headers of the C++ standard library.

    Parameters
    ----------
    stubs : Path
        The folder where the preprocessor found them.
    """
    before = ("", 1)
    for token in text.stream.tokens:
        marker = parse_line_marker(token)
        if marker is None:
            continue
        if Path(before[0]).parent == stubs and Path(before[0]).name in _CPP_HEADERS:
            # The marker after an empty header leads back to the line after the #include.
            text.report_line(
                marker[0], marker[1] - 1,
                f"'{Path(before[0]).name}' file not found: Metal has no C++ standard library; "
                "include <metal_stdlib>",
            )  # fmt: skip
        before = marker


def _is_operator(stream: TokenStream, position: int) -> bool:
    """``bool b = noexcept(f());``, but not the specifier after a function's parameters."""
    return stream.before(position) in ("=", "(", ",", "return", "!", "&&", "||", "?", ":", "<")


def _is_member_name(stream: TokenStream, position: int) -> bool:
    """``operator new``, and ``A() = delete;``."""
    before = stream.before(position)
    return before == "operator" or (before == "=" and stream.after(position) == ";")


def _is_statement(stream: TokenStream, position: int) -> bool:
    """A label of a function (``void f() __asm("name");``) follows its parameters."""
    return stream.before(position) in (";", "{", "}", ":", "")


def _is_our_namespace(stream: TokenStream, position: int) -> bool:
    return stream.text(position) == "metalloid" and (
        stream.after(position) == "::" or stream.before(position) == "namespace"
    )
