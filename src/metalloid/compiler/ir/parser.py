"""From the text of a module to `Function`s.

Only what clang emits for kernels is understood; anything else raises `Unsupported`, which sends the
kernel to an engine that leaves its code to LLVM. Metadata and attributes, which are hints, are
skipped unless they are asked for.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import replace

from metalloid.compiler.ir.function import Block, Function, Instruction, Value
from metalloid.compiler.ir.instruction_parser import Line
from metalloid.compiler.ir.printer import function_text
from metalloid.compiler.ir.types import Array, Struct, Type, Unsupported

#: Calls that say something to the optimiser and compute nothing.
_HINTS = re.compile(r"@llvm\.(?:dbg|lifetime|assume|experimental\.noalias|invariant\.start)\b")
_BUNDLES = re.compile(r"\) *(?:#\d+ *)?\[")
_SPACE = re.compile(r" addrspace\(\d+\)")
_TYPE_DEFINITION = re.compile(r'^(%(?:"[^"]*"|[\w.$-]+)) = type (.*)$', re.M)
_DEFINITION = re.compile(
    r'^define ([^\n]*?)@([\w.$]+|"[^"\n]+")\(([^\n]*?)\)'
    r"([^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\{\n(.*?)^\}",
    re.M | re.S,
)
_CONSTANT_CAST = re.compile(
    r"bitcast \( ?ptr (@[\w.$]+|@\"[^\"]*\"|getelementptr [\w ]*\([^()]*\)) to ptr ?\)"
)
_TABLE = re.compile(r'^(@(?:"[^"]*"|[\w.$-]+)) = [^\n]*? constant (\[\d+ x \w+\]) ', re.M)
_LINKAGES = ("private", "internal", "linkonce", "linkonce_odr", "weak", "weak_odr")
_COMMENT = re.compile(r'^((?:[^";]|"[^"]*")*);.*')  # strings may have semicolons
_LABEL = re.compile(r'^([\w.$-]+|"[^"]*"):')


def flatten_address_spaces(ir: str) -> str:
    """`ir` with one address space only: on a CPU they are all the same memory."""
    # A cast from a type to itself is no addrspacecast any more, and none in a constant.
    flat = _SPACE.sub("", ir).replace("addrspacecast", "bitcast")
    return _CONSTANT_CAST.sub(r"\1", flat)


def parse_function(ir: str, name: str, retain_hints: bool = False) -> Function:
    """The function `name` of a module.

    Parameters
    ----------
    ir : str
        The module, for CPUs without address spaces.
    retain_hints : bool
        Keep what the vectoriser has no use for: metadata, attributes, names of structs, calls that
        only inform the optimiser. Then `replace_function` gives an equivalent module.

    Raises
    ------
    Unsupported
        If there is something in it that no kernel was seen to contain.
    """
    return _parser(ir, retain_hints).function(_definition(ir, name))


def is_hint(instruction: Instruction) -> bool:
    """Whether it is a call that only informs the optimiser."""
    return instruction.op == "call" and _HINTS.match(instruction.callee) is not None


def function_names(ir: str) -> list[str]:
    """The functions that a module defines, in order."""
    return list(_definitions(ir))


def first_bad_line(ir: str, name: str) -> tuple[int, str] | None:
    """Number in the module and text of the first line of a function that does not parse."""
    definition, parser = _definition(ir, name), _parser(ir, False)
    number = ir.count("\n", 0, definition.start(5))
    for line in definition[5].split("\n"):
        number += 1
        words = _COMMENT.sub(r"\1", line)
        if not words.strip() or _LABEL.match(words) or _HINTS.search(words):
            continue
        if words.lstrip().startswith("switch ") and "]" not in words:
            return None  # it goes on for several lines; so far all was right
        try:
            instruction = parser._line(words).instruction()
            is_complete = all(value.name for value in instruction.operands)
        except Exception:  # the parser expects what clang writes, and checks little
            is_complete = False
        if not is_complete:
            return number, line.strip()
    return None


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


def map_functions(
    ir: str,
    edit: Callable[[Function], object],
    is_edited: Callable[[str], bool] = lambda _: True,
) -> str:
    """`ir` with each of its functions as `edit` leaves it, which changes it.

    Parameters
    ----------
    edit : callable
    is_edited : callable, optional
        Whether to edit the function with a definition.

    Raises
    ------
    Unsupported
        If there is something in a function that no kernel was seen to contain.
    """
    segments, end = [], 0
    for name, match in _definitions(ir).items():
        if not is_edited(match[0]):
            continue
        function = parse_function(ir, name, retain_hints=True)
        edit(function)
        segments += [ir[end : match.start()], function_text(function)]
        end = match.end()
    return "".join((*segments, ir[end:]))


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
    return Line(text, _parser(ir, False).named_type).type()


@functools.lru_cache(maxsize=2)
def _parser(ir: str, retain_hints: bool) -> _Parser:
    return _Parser(ir, retain_hints)


class _Parser:
    """Parses the functions of one module."""

    def __init__(self, ir: str, retain_hints: bool) -> None:
        self._retain_hints = retain_hints
        self._definitions = dict(_TYPE_DEFINITION.findall(ir))
        self._named: dict[str, Type] = {}
        arrays = ((name, Line(text, self.named_type).type()) for name, text in _TABLE.findall(ir))
        self._tables = {name: array for name, array in arrays if isinstance(array, Array)}

    def function(self, match: re.Match[str]) -> Function:
        """The function that `_DEFINITION` matched."""
        head, name, parameters, attributes, body = match.groups()
        words, result = self._line(head).result()
        if isinstance(result, Struct) and not self._retain_hints:
            raise Unsupported("a struct as the result of a function")
        values, parameter_attributes = self._parameters(parameters)
        groups = attributes.split() if self._retain_hints else re.findall(r"#\d+", attributes)
        qualifiers = (word for word in words if word not in _LINKAGES)
        function = Function(
            name=name,
            result=result,
            parameters=values,
            attributes=" ".join(groups),
            blocks={},
            linkage=next((word for word in words if word in _LINKAGES), ""),
            tables=self._tables,
            parameter_attributes=parameter_attributes,
            qualifiers=tuple(qualifiers) if self._retain_hints else (),
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
            if line.lstrip().startswith("#dbg"):
                continue
            # An assumption about bundles of operands is one of the hints that may be dropped.
            if _HINTS.search(line) and (not self._retain_hints or _BUNDLES.search(line)):
                continue
            instruction = self._line(line).instruction()
            if instruction.op == "phi":
                block.phis.append(instruction)
            elif instruction.op in ("br", "ret", "switch", "unreachable"):
                block.end = instruction
            else:
                block.body.append(instruction)
        return function

    def _parameters(self, text: str) -> tuple[list[Value], list[list[str]]]:
        """The parameters, and the attributes of each."""
        line = self._line(text)
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
            result_type = self._line(self._definitions[name]).type()
            if self._retain_hints and isinstance(result_type, Struct):
                result_type = replace(result_type, name=name)
            self._named[name] = result_type
        return self._named[name]

    def _line(self, text: str) -> Line:
        return Line(text, self.named_type, self._retain_hints)


def _joined_lines(body: str) -> list[str]:
    """Lines without comments; a switch on one line."""
    lines: list[str] = []
    for line in body.split("\n"):
        if not line.strip() or line.lstrip().startswith(";"):
            continue
        if lines and lines[-1].lstrip().startswith("switch ") and "]" not in lines[-1]:
            lines[-1] += line
        else:
            lines.append(line)
    return lines
