"""Textures and samplers: reads, samples, writes, and the settings of samplers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from metalloid.differentiate.frontend.aggregates import AggregateReader
from metalloid.differentiate.frontend.expressions import ZERO, ExpressionReader, type_of
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.frontend.structs import qualified_name
from metalloid.differentiate.program.text import text_of
from metalloid.differentiate.program.tree import Assign, Expression, Sampler
from metalloid.differentiate.program.types import Type
from metalloid.msl.portable.syntax_tree import Node, SourceLocation

_MEMBER = re.compile(r"(?:\.|->)(\w+) 0x\w+")
#: Options of samples, with a number each.
_OPTIONS = ("level", "bias", "min_lod_clamp")
_QUERY = re.compile(r"get_\w+")
_CASTS = ("ImplicitCastExpr", "ParenExpr", "MaterializeTemporaryExpr")
_SAMPLER = Type("", record="sampler")


class TextureReader(AggregateReader):
    """Reads calls of the member functions of textures.

    Attributes
    ----------
    samplers : dict of Sampler
        By name.
    """

    def __init__(self, nodes: Sequence[Node], literal_at: Callable[[SourceLocation], str]) -> None:
        super().__init__(nodes, literal_at)
        self.samplers: dict[str, Sampler] = {}
        self._declarations = {
            node.address: node for node in nodes if node.kind in ("VarDecl", "EnumConstantDecl")
        }

    def _global(self, node: Node, address: str, name: str) -> Expression:
        declaration = self._declarations.get(address)
        if declaration is not None:
            name = qualified_name(declaration)
            if declaration.kind == "EnumConstantDecl":
                if any(each.kind == "DeclStmt" for each in declaration.ancestors()):
                    raise Refused(node.begin, "enumerators that a function declares have no rule")
                return Expression("constant", type_of(node), name)
        if declaration is None or not type_of(declaration).is_sampler:
            return super()._global(node, address, name)
        self.samplers[name] = Sampler(_settings(declaration))
        self.known[address] = Expression("constant", _SAMPLER, name)
        return self.known[address]

    def declare_sampler(self, node: Node) -> None:
        """Read the declaration of a sampler."""
        variable = ExpressionReader.new_variable(self, node.label, _SAMPLER)
        self.known[node.address] = Expression("constant", _SAMPLER, variable.name)
        given = ", ".join(map(self._setting_text, _setting_nodes(node)))
        text = f"constexpr sampler {variable.name}{f'({given})' if given else ''};"
        self.samplers[variable.name] = Sampler(_settings(node), text)

    def sampler_parameter(self, name: str) -> Expression:
        """A sampler whose settings are known at a launch."""
        self.samplers[name] = Sampler(None)
        return Expression("constant", _SAMPLER, name)

    def _setting_text(self, node: Node) -> str:
        if node.kind == "DeclRefExpr":
            kind, value = _enumerator(node)
            return f"{kind}::{value}"
        return text_of(self._option(node))

    def _option(self, node: Node) -> Expression:
        """``level(2)``: its name and its numbers."""
        while node.kind != "CXXConstructExpr" and len(node.children) == 1:
            node = node.children[0]
        name = type_of(node).record.rpartition("::")[2]
        args = tuple(self.value(child) for child in node.children)
        return Expression("option", Type("float"), name, args)

    def _construct(self, node: Node) -> Expression:
        to = type_of(node)
        if (to.is_sampler or to.texture) and len(node.children) == 1:
            return self.value(node.children[0])
        return super()._construct(node)

    # -- member functions

    def _read_CXXMemberCallExpr(self, node: Node) -> Expression:
        member = node.children[0]
        target = member.children[0]
        while target.kind in _CASTS:
            target = target.children[-1]
        name = _MEMBER.search(member.text)
        if name is None or type_of(target).texture is None:
            return super()._read_CXXMemberCallExpr(node)
        texture = self.value(target)
        given = [child for child in node.children[1:] if child.kind != "CXXDefaultArgExpr"]
        args = tuple(map(self._argument, given))
        result = type_of(node)
        if _QUERY.fullmatch(name[1]):
            return Expression("call", result, f"{texture.name}.{name[1]}", args)
        if name[1] == "write":
            color = args[0]
            target_type = Type(color.type.scalar, color.type.lanes)
            texel = Expression("texel", target_type, "", (texture, *args[1:]))
            self.statements.append(Assign(texel, color, node.begin))
            return ZERO
        if name[1] == "fence":
            raise Refused(node.begin, "textures that are written and read have no rule")
        return Expression("method", result, name[1], (texture, *args))

    def _argument(self, node: Node) -> Expression:
        if node.kind == "DeclRefExpr" and type_of(node).record.endswith("component"):
            kind, value = _enumerator(node)
            return Expression("constant", type_of(node), f"{kind}::{value}")
        name = type_of(node).record.rpartition("::")[2]
        if name in _OPTIONS or name.startswith("gradient"):
            return self._option(node)
        return self.value(node)


def _setting_nodes(declaration: Node) -> list[Node]:
    built = declaration.children[0] if declaration.children else None
    return built.children if built is not None else []


def _enumerator(node: Node) -> tuple[str, str]:
    """The name of an enumeration, and of a value of it."""
    kind = type_of(node).record.rpartition("::")[2]
    return kind, node.text.partition("EnumConstant ")[2].split("'")[1]


def _settings(declaration: Node) -> dict[str, str]:
    """The settings of a sampler that are not those of one without settings."""
    settings = {}
    for node in _setting_nodes(declaration):
        if node.kind == "DeclRefExpr":
            kind, value = _enumerator(node)
            settings[kind] = value
        elif (name := type_of(node).record.rpartition("::")[2]) != "max_anisotropy":
            settings[name] = ""  # a kernel has no derivatives of coordinates for anisotropy
    return settings
