"""Lower preprocessed MSL to C++ that clang accepts, and say which kernels it holds.

The spaces (`device`, `constant`, ...) stay as words, which the prelude defines, so that clang's
messages quote the user's own text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from metalloid.msl.address_spaces import (
    lower_array_parameters,
    lower_member_functions,
    lower_threadgroup_variables,
)
from metalloid.msl.attributes import Attribute, lower_attributes
from metalloid.msl.entry_point_parser import find_entry_points
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.function_constants import FunctionConstant, lower_function_constants
from metalloid.msl.inlined_size import largest_inlined_size
from metalloid.msl.linkage import lower_linkage
from metalloid.msl.literals import lower_half_casts, lower_literals
from metalloid.msl.records import describe_records
from metalloid.msl.signature import IDS
from metalloid.msl.tokens import TokenStream, is_identifier

#: Arguments of ``coherent(...)``, and words after a lone ``coherent``: elsewhere it is a name.
_SCOPES = ("device", "system")
_QUALIFIERS = ("device", "const", "volatile")
#: What follows the name of a type, but not that of a variable.
_OF_TYPES = ("*", "&", "<", "::")
_DEFINITION = re.compile(r"\s*#\s*(?:define|undef)\s+(\w+)")
_UNROLL = re.compile(r"\s*#\s*pragma\s+(?:clang\s+loop\s+)?unroll\b(.*)", re.S)
_LINKING = re.compile(r"\s*#\s*pragma\s+comment\b")

#: Where functions would become larger, large ones are not inlined. MLX's largest have 5,000 tokens,
#: and 7,000 where templates count; elliptic curves over numbers of 256 bits 10,000 to 800,000.
_MAX_INLINED_SIZE, _MAX_TEMPLATES_SIZE = 7000, 12_500


@dataclass(frozen=True)
class Lowered:
    """The result of `lower`.

    Attributes
    ----------
    text : str
        C++ of the same lines as the preprocessed text.
    kernels : tuple of EntryPoint
    other_stages : dict
        Name to stage (``"vertex"`` ...) of the entry points that cannot run here.
    constants : tuple of FunctionConstant
    attributes : tuple of Attribute
        Those of Metal, by position in the stream.
    has_large_calls : bool
        Whether it takes too long to compile with every call inlined.
    """

    text: str
    kernels: tuple[EntryPoint, ...]
    other_stages: dict[str, str]
    constants: tuple[FunctionConstant, ...]
    attributes: tuple[Attribute, ...]
    has_large_calls: bool


def lower(preprocessed: str) -> Lowered:
    """Lower the output of ``clang -E -dD`` (line markers kept).

    Parameters
    ----------
    preprocessed : str
        MSL without macros and comments. It need not be correct: what makes no sense is left for
        clang to report.
    """
    return lower_stream(TokenStream(preprocessed))


def lower_stream(stream: TokenStream) -> Lowered:
    """`lower`, which also returns the stream, to map positions back."""
    _lower_directives(stream)
    attributes = lower_attributes(stream)
    constants = lower_function_constants(stream, attributes)
    entry_points = find_entry_points(stream, attributes)
    _refuse_id_variables(stream, attributes)
    lower_threadgroup_variables(stream)
    lower_array_parameters(stream)
    lower_member_functions(stream)
    describe_records(stream, attributes)
    lower_linkage(stream)
    lower_half_casts(stream)
    lower_literals(stream)
    _drop_coherence(stream)
    return Lowered(
        stream.render(), tuple(entry_points.kernels), entry_points.other_stages, tuple(constants),
        tuple(attributes), _has_large_calls(stream),
    )  # fmt: skip


def _has_large_calls(stream: TokenStream) -> bool:
    return (
        largest_inlined_size(stream, templates=False) > _MAX_INLINED_SIZE
        or largest_inlined_size(stream, templates=True) > _MAX_TEMPLATES_SIZE
    )


def _lower_directives(stream: TokenStream) -> None:
    """Drop ``#define`` lines (-dD), pragmas for linkers, and counts of unrolling that are macros.

    The preprocessor does not expand macros in pragmas.
    """
    macros: set[str] = set()
    for position in stream.directives:
        token = stream.text(position)
        if definition := _DEFINITION.match(token):
            macros.add(definition[1])
            stream.replace(position, "")
        elif (unroll := _UNROLL.match(token)) and macros.intersection(
            re.findall(r"[A-Za-z_]\w*", unroll[1])
        ):
            stream.replace(position, "#pragma unroll")
        elif _LINKING.match(token):
            stream.replace(position, "")


def _refuse_id_variables(stream: TokenStream, attributes: list[Attribute]) -> None:
    """``uint i [[thread_position_in_grid]];`` outside of a kernel would be a plain zero."""
    for attribute in attributes:
        if attribute.name in IDS and stream.after(attribute.end - 1) == ";":
            name = stream.before(attribute.position)
            message = f"[[{attribute.name}]] is for parameters of kernels here: make {name} one"
            end = stream.next(attribute.end - 1)
            stream.replace(end, f'; static_assert(false, "{message}");')


def _drop_coherence(stream: TokenStream) -> None:
    """``coherent(system)`` and ``coherent device`` qualify memory that is coherent here anyway."""
    for position in stream.where("coherent"):
        following = stream.next(position)
        if stream.text(following) == "(" and stream.text(stream.next(following)) in _SCOPES:
            stream.blank(position, stream.partner.get(following, following) + 1)
        elif stream.text(following) in _QUALIFIERS or (
            stream.before(position) in _QUALIFIERS
            and is_identifier(stream.text(following))
            and (is_identifier(after := stream.after(following)) or after in _OF_TYPES)
        ):
            stream.blank(position, position + 1)
