"""A text under inspection: its tokens, attributes and syntax tree, and how they meet."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from metalloid.msl.address_spaces import SPACES
from metalloid.msl.attributes import Attribute
from metalloid.msl.clang_messages import SourceMap
from metalloid.msl.diagnostics import Diagnostic
from metalloid.msl.entry_point_parser import STAGES, AttributeIndex, declaration_start
from metalloid.msl.portable.syntax_tree import Node, SourceLocation
from metalloid.msl.tokens import TokenStream

_QUALIFIERS = SPACES | {
    "const", "volatile", "constexpr", "static", "inline", "extern", "mutable", "typename", "struct",
}  # fmt: skip


@dataclass
class Text:
    """The input of the rules.

    Attributes
    ----------
    stream : TokenStream
        The user's tokens, preprocessed, with the edits of the lowering.
    attributes : list of Attribute
    nodes : list of Node
        The syntax tree, in the order of clang's dump.
    source_map : SourceMap
    findings : list of Diagnostic
        What the rules have found, in no order.
    """

    stream: TokenStream
    attributes: list[Attribute]
    nodes: list[Node]
    source_map: SourceMap
    findings: list[Diagnostic]

    def report(self, position: int, message: str) -> None:
        """Report `message` at a token, once."""
        self._add(self.source_map.error_at(position, message))

    def report_line(self, file: str, line: int, message: str) -> None:
        """Report `message` about a whole line of the user's."""
        self._add(self.source_map.localise(Diagnostic("error", file, line, 1, message)))

    def _add(self, finding: Diagnostic) -> None:
        if finding not in self.findings:
            self.findings.append(finding)

    def token(self, location: SourceLocation | None) -> int | None:
        """The token at a location of the tree; None if it is not the user's."""
        return None if location is None else self.source_map.token_at(location.diagnostic())

    def named(self, node: Node) -> int | None:
        """The token of the name that `node` declares; None if it has none in the user's text."""
        position = self.token(node.name)
        return (
            position if position is not None and self.stream.text(position) == node.label else None
        )

    def declaration(self, node: Node, name: int) -> range:
        """The tokens of a declaration from its first one up to its name."""
        start = self.token(node.begin)
        if start is None or start > name:
            start = name
        while self.stream.before(start) in _QUALIFIERS:
            start = self.stream.previous(start)
        return range(start, name)

    def words(self, span: range) -> set[str]:
        """The significant tokens of `span`."""
        return {self.stream.text(p) for p in self.stream.significant(span.start, span.stop)}

    def statement(self, name: int) -> range:
        """The tokens before `name` back to where its statement or declaration begins."""
        return range(declaration_start(self.stream, name), name)

    @functools.cached_property
    def attribute_index(self) -> AttributeIndex:
        """The attributes by position."""
        return AttributeIndex(self.attributes)

    @functools.cached_property
    def type_parameters(self) -> set[str]:
        """Names of all type parameters of templates: what they stand for may carry a space."""
        kinds = ("TemplateTypeParmDecl", "TemplateTemplateParmDecl")
        return {node.label for node in self.nodes if node.kind in kinds and node.label}

    def stage(self, name: int) -> str | None:
        """``"kernel"`` (or another stage) if the function of that name is one."""
        span = self.statement(name)
        words = self.words(span)
        stages = words.intersection(STAGES)
        return stages.pop() if stages else None


#: clang's names of the named spaces.
NAMED_SPACES = ("__global", "__local", "__private")


def is_in_named_space(type_name: str) -> bool:
    """Whether a type, as clang prints it, names a space anywhere."""
    return any(space in type_name for space in NAMED_SPACES)
