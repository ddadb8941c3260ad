"""From the text of a module to `Function`s.

Only what clang emits for kernels is understood; anything else raises `Unsupported`, which sends the
kernel to an engine that leaves its code to LLVM. Metadata and attributes are skipped: they are
hints.
"""

from __future__ import annotations

import functools
import re

from metalloid.compiler.ir.function import Block, Function, Value
from metalloid.compiler.ir.instruction_parser import Line
from metalloid.compiler.ir.printer import function_text
from metalloid.compiler.ir.types import VOID, Array, Type, Unsupported, plain_type

#: Calls that say something to the optimiser and compute nothing.
_HINTS = re.compile(r"@llvm\.(?:dbg|lifetime|assume|experimental\.noalias|invariant\.start)\b")
_SPACE = re.compile(r" addrspace\(\d+\)")
_TYPE_DEFINITION = re.compile(r'^(%(?:"[^"]*"|[\w.$-]+)) = type (.*)$', re.M)
_DEFINITION = re.compile(
    r"^define ([^\n]*?)@([\w.$]+)\(([^\n]*?)\)([^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\{\n(.*?)^\}",
    re.M | re.S,
)
_CONSTANT_CAST = re.compile(
    r"bitcast \(ptr (@[\w.$]+|@\"[^\"]*\"|getelementptr [\w ]*\([^()]*\)) to ptr\)"
)
_TABLE = re.compile(r'^(@(?:"[^"]*"|[\w.$-]+)) = [^\n]*? constant (\[\d+ x \w+\]) ', re.M)
_LINKAGES = ("private", "internal", "linkonce", "linkonce_odr", "weak", "weak_odr")
_LABEL = re.compile(r'^([\w.$-]+|"[^"]*"):')


def flatten_address_spaces(ir: str) -> str:
    """`ir` with one address space only: on a CPU they are all the same memory."""
    # A cast from a type to itself is no addrspacecast any more, and none in a constant.
    flat = _SPACE.sub("", ir).replace("addrspacecast", "bitcast")
    return _CONSTANT_CAST.sub(r"\1", flat)


def parse_function(ir: str, name: str) -> Function:
    """The function `name` of a module without address spaces.

    Raises
    ------
    Unsupported
        If there is something in it that no kernel was seen to contain.
    """
    return _parser(ir).function(_definition(ir, name))


def definition(ir: str, name: str) -> str:
    """The text of the function `name`.

    Raises
    ------
    Unsupported
        If the module has none.
    """
    return _definition(ir, name)[0]


def replace_function(ir: str, function: Function) -> str:
    """`ir` with `function` in place of its function of that name.

    For looking at what a pass does: clang compiles the result, which must do what it did before.
    """
    start, end = _definition(ir, function.name).span()
    return f"{ir[:start]}{function_text(function)}{ir[end:]}"


def _definition(ir: str, name: str) -> re.Match[str]:
    try:
        return _definitions(ir)[name]
    except KeyError:
        raise Unsupported(f"the module has no function {name}") from None


@functools.lru_cache(maxsize=2)  # several functions of one module are parsed one after the other
def _definitions(ir: str) -> dict[str, re.Match[str]]:
    return {match[2]: match for match in _DEFINITION.finditer(ir)}


def type_of(text: str, ir: str) -> Type:
    """The type at the beginning of `text`, which is part of a module.

    Raises
    ------
    Unsupported
        If no kernel was seen to contain it.
    """
    return Line(text, _parser(ir).named_type).type()


@functools.lru_cache(maxsize=2)
def _parser(ir: str) -> _Parser:
    return _Parser(ir)


class _Parser:
    """Parses the functions of one module."""

    def __init__(self, ir: str) -> None:
        self._definitions = dict(_TYPE_DEFINITION.findall(ir))
        self._named: dict[str, Type] = {}
        arrays = ((name, Line(text, self.named_type).type()) for name, text in _TABLE.findall(ir))
        self._tables = {name: array for name, array in arrays if isinstance(array, Array)}

    def function(self, match: re.Match[str]) -> Function:
        """The function that `_DEFINITION` matched."""
        head, name, parameters, attributes, body = match.groups()
        words = head.split()
        if "}" in words:
            raise Unsupported("a struct as the result of a function")
        result = VOID if "void" in words else plain_type(words[-1])
        values, parameter_attributes = self._parameters(parameters)
        function = Function(
            name,
            result,
            values,
            " ".join(re.findall(r"#\d+", attributes)),
            {},
            next((word for word in words if word in _LINKAGES), ""),
            self._tables,
            parameter_attributes,
        )
        block = None
        for line in _joined_lines(body):
            label = None if line[0] == " " else _LABEL.match(line)
            if label:
                block = Block("%" + label[1])
                function.blocks[block.name] = block
                continue
            if block is None:
                unnamed = sum(p.name[1:].isdigit() for p in function.parameters)
                block = Block(f"%{unnamed}")
                function.blocks[block.name] = block
            if _HINTS.search(line) or line.lstrip().startswith("#dbg"):
                continue
            instruction = Line(line, self.named_type).instruction()
            if instruction.op == "phi":
                block.phis.append(instruction)
            elif instruction.op in ("br", "ret", "switch", "unreachable"):
                block.end = instruction
            else:
                block.body.append(instruction)
        return function

    def _parameters(self, text: str) -> tuple[list[Value], list[list[str]]]:
        """The parameters, and the attributes of each."""
        line = Line(text, self.named_type)
        values, attributes = [], []
        while line.more():
            type_ = line.type()
            *words, name = line.until_comma()
            values.append(Value(type_, name))
            attributes.append(words)
        return values, attributes

    def named_type(self, name: str) -> Type:
        """The struct that a name like ``%struct.S`` stands for."""
        if name not in self._named:
            if name not in self._definitions:
                raise Unsupported(f"the type {name}")
            self._named[name] = Line(self._definitions[name], self.named_type).type()
        return self._named[name]


def _joined_lines(body: str) -> list[str]:
    """Lines without comments; a switch on one line."""
    lines: list[str] = []
    for line in body.split("\n"):
        if not line.strip() or line.lstrip().startswith(";"):
            continue
        if lines and lines[-1].lstrip().startswith("switch") and "]" not in lines[-1]:
            lines[-1] += line
        else:
            lines.append(line)
    return lines
