"""The facts of a kernel's checks that launches and messages need."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from metalloid.compiler.toolchain.cache import digest
from metalloid.msl.layout import Layout
from metalloid.msl.signature import Signature

if TYPE_CHECKING:  # launches do not compile
    from metalloid.compiler.bounds.pipeline import BoundsContext
    from metalloid.compiler.bounds.sites import Site
    from metalloid.compiler.frontend.source_positions import SourcePositions

_PROMISES = r"\b(?:willreturn|mustprogress|nofree|norecurse|nosync) |memory\([^)]*\) ?"
_WORD_BYTES = 8
#: Pointers in memory whose extents a launch passes.
_MAX_SLOTS = 64
#: `Op.ARGUMENT`, for launches, which do not import the compiler.
ARGUMENT = 3


class BoundsTable(NamedTuple):
    """Facts of the checks, as JSON has them.

    Attributes
    ----------
    key : str
        The same for code with the same sites.
    sites : list
        Of each site: word, slot, name and size of its object, node of its range (-2: launches
        cannot prove it), and its accesses: distance, bytes, whether it writes, and its line in the
        text.
    nodes : list
        Operations of the range program.
    """

    key: str = ""
    sites: tuple[dict[str, Any], ...] = ()
    nodes: tuple[tuple[int, ...], ...] = ()


#: Of a kernel without checks.
NO_CHECKS = BoundsTable()


def pointer_slots(signature: Signature) -> tuple[tuple[int, int], ...]:
    """Pointers in memory that launches pass and kernels do not change: position and offset.

    Structs, tensors and arrays of pointers have them.
    """
    slots: list[tuple[int, int]] = []

    def add(position: int, layout: Layout, offset: int, is_member: bool) -> None:
        for number in range(max(layout.count, 1)):
            if layout.form == "value" or not is_member:
                for member in layout.members:
                    at = offset + number * layout.bytes + member.offset
                    add(position, member, at, is_member=True)
            elif layout.form == "pointer":
                slots.append((position, offset + number * _WORD_BYTES))

    for p in signature.arguments:
        layout = p.layout
        if layout.form == "tensor":
            slots.append((p.position, 0))
        elif layout.form == "pointer" and layout.count:  # array<device T*, n>
            add(p.position, layout, 0, is_member=True)
        elif layout.form in ("pointer", "reference") and layout.space == "constant":
            add(p.position, layout, 0, is_member=False)
    return tuple(slots[:_MAX_SLOTS])


def words_of(signature: Signature) -> int:
    """The number of words of launches whose accesses are checked."""
    return 2 * (len(signature.sources) + len(pointer_slots(signature)))


def words_with_table(signature: Signature) -> int:
    """The same where objects are looked up: the address of the table of pointees follows."""
    return words_of(signature) + bool(pointer_slots(signature))


def texture_words(signature: Signature) -> tuple[tuple[int, int, int], ...]:
    """Textures and samplers of a launch: position of a word, distance and offset in its memory."""
    words: set[tuple[int, int, int]] = set()

    def add(position: int, layout: Layout, step: int, offset: int) -> None:
        if layout.form in ("texture", "sampler"):
            words.add((position, _WORD_BYTES, offset) if layout.count else (position, step, offset))
        elif layout.form == "value":
            for number in range(max(layout.count, 1)):
                for member in layout.members:
                    add(position, member, step, offset + number * layout.bytes + member.offset)

    for p in signature.arguments:
        if p.layout.form in ("texture", "sampler"):
            words.add((p.position, 1, 0))
        elif p.layout.form in ("pointer", "reference"):
            for member in p.layout.members:
                add(p.position, member, p.layout.bytes, member.offset)
    return tuple(sorted(words))


def without_promises(ir: str, attributes: str) -> str:
    """A module whose functions may end the launch and write anything, whatever clang inferred.

    Parameters
    ----------
    attributes : str
        Their attribute groups.
    """
    for group in re.findall(r"#\d+", attributes):
        pattern = rf"^attributes {group} = .*$"
        ir = re.sub(pattern, lambda match: re.sub(_PROMISES, "", match[0]), ir, flags=re.M)
    return ir


def bounds_table(context: BoundsContext, ir: str, positions: SourcePositions) -> BoundsTable:
    """The table of a function after `add_checks`."""
    from metalloid.compiler.bounds.operations import Op

    sites = tuple(_facts(site, ir, positions) for site in context.sites)
    shape = [
        [site["word"], site["slot"], site["name"], site["node"], len(site["accesses"])]
        for site in sites
    ]
    assert Op.ARGUMENT == ARGUMENT
    nodes = tuple((int(n.op) | n.width << 8, n.a, n.b, n.c) for n in context.program.nodes)
    return BoundsTable(digest(repr(shape)), sites, nodes)


def _facts(site: Site, ir: str, positions: SourcePositions) -> dict[str, Any]:
    return {
        "word": site.object.word,
        "slot": site.object.slot,
        "name": "" if site.object.is_selected else shown_name(site.object.name),
        "bytes": site.object.nbytes,
        "node": site.node,
        "first": site.first,
        "end": site.end,
        "accesses": [
            [access.distance, access.nbytes, access.writes, positions.of(access.debug, ir)]
            for access in site.accesses
        ],
    }


def shown_name(name: str) -> str:
    """The name of a variable in the text, from its name in the module."""
    if name.startswith("%"):
        return re.split(r"\.(?:i|sroa)\b", name[1:])[0]
    bare = re.sub(r"_\d+$|\.\d+$", "", name[1:].strip('"'))
    ends = [(int(match[0]), bare[match.end() :]) for match in re.finditer(r"\d+", bare)]
    return next((rest for length, rest in reversed(ends) if len(rest) == length), bare)
