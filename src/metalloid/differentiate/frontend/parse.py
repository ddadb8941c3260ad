"""The syntax tree of a kernel, from the text of its library."""

from __future__ import annotations

import functools
import re

from metalloid.compiler.frontend import translate
from metalloid.compiler.frontend.unit import Options
from metalloid.compiler.toolchain.cache import shared_cache
from metalloid.compiler.toolchain.target import Target
from metalloid.differentiate.analysis.versions import split_versions
from metalloid.differentiate.frontend.expressions import REFERENCE
from metalloid.differentiate.frontend.reader import Reader
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.frontend.structs import resolve_aliases, resolve_elements
from metalloid.differentiate.program.tree import Parameter, Program
from metalloid.differentiate.program.types import Type, parse_type
from metalloid.errors import ArgumentError, CompileError
from metalloid.kernels.kernel import Kernel
from metalloid.msl.clang_messages import SourceMap
from metalloid.msl.diagnostics import report
from metalloid.msl.entry_points import EntryPoint
from metalloid.msl.lower import lower_stream
from metalloid.msl.portable.syntax_tree import Node, SourceLocation, parse_dump
from metalloid.msl.tokens import TokenStream

_NUMBER = re.compile(r"\.?\d(?:[eEpP][+-]|'?[\w.])*")


class KernelText:
    """A library's text, lowered and parsed for one of its kernels.

    Parameters
    ----------
    source, file : str
    entry : EntryPoint
    """

    def __init__(
        self, source: str, file: str, options: Options, target: Target, entry: EntryPoint
    ) -> None:
        cache = shared_cache()
        preprocessed, _ = translate.preprocess(source, file, options, cache)
        stream = TokenStream(preprocessed)
        lowered = lower_stream(stream)
        unset = "\n".join(line for each in lowered.constants for line in each.definitions(None))
        instance = translate.instantiations([entry]) if "<" in entry.expression else ""
        outcome = translate.run_repairing(
            [*translate.compile_command(stream.render(), options, target, cache), "-fsyntax-only",
             "-Wno-everything", "-Xclang", "-ast-dump", "-"],
            stream,
            lambda text: translate.wrapped(f"{unset}\n{text}{instance}"),
        )  # fmt: skip
        read = functools.partial(translate.read_source, {file: source})
        self.source_map = SourceMap(stream, read)
        self._nodes = parse_dump(outcome.text)
        resolve_aliases(self._nodes)
        resolve_elements(self._nodes)
        self._entry = entry

    def program(self) -> Program:
        """The kernel.

        Raises
        ------
        Refused
            If it has something that is not differentiated.
        """
        kernel = self._kernel()
        declared = [child for child in kernel.children if child.kind == "ParmVarDecl"]
        parameters = []
        for written, node in zip(self._entry.parameters, declared, strict=True):
            attributes = "".join(
                f" [[{name}{f'({value})' if value else ''}]]" for name, value in written.attributes
            )
            type_ = parse_type(node.types[1])
            declaration = written.declaration
            if self._is_instance:  # its declaration names types of the template
                declaration = _declaration(written.name, type_, "&" in declaration)
            parameters.append(Parameter(written.name, type_, declaration, attributes))
        return split_versions(Reader(self._nodes, self._literal_at).read(kernel, parameters))

    def _kernel(self) -> Node:
        expression = self._entry.expression
        for node in self._nodes:
            is_global = node.parent is not None and node.parent.kind == "TranslationUnitDecl"
            if node.kind == "VarDecl" and is_global and node.label == expression:
                # a reference to an instance
                texts = [each.text for each in node.descendants() if each.kind == "DeclRefExpr"]
                reference = REFERENCE.search(texts[-1])
                return next(n for n in self._nodes if reference and n.address == reference[2])
        name = expression.partition("<")[0].rpartition("::")[2]
        functions = [
            node
            for node in self._nodes
            if node.kind == "FunctionDecl" and node.label == name
            and any(child.kind == "CompoundStmt" for child in node.children)
        ]  # fmt: skip
        instances = [node for node in functions if "explicit_instantiation_def" in node.text]
        return (instances or functions)[0]

    @property
    def _is_instance(self) -> bool:
        """Whether the kernel comes from a template."""
        name = self._kernel().label
        return "<" in self._entry.expression or name != self._entry.expression.rpartition("::")[2]

    def _literal_at(self, location: SourceLocation) -> str:
        text = self.source_map.text_at(location.diagnostic())
        match = _NUMBER.match(text)
        if match is None:
            raise Refused(location, "this number has no text")
        return match[0].replace("'", "")

    def error(self, refused: Refused, name: str) -> CompileError:
        """The error for what is refused, at the user's line."""
        location = refused.location or SourceLocation(self._entry.file, self._entry.line, 1)
        diagnostic = location.diagnostic()
        finding = self.source_map.localise(diagnostic)
        finding = type(finding)(
            "error", finding.file, finding.line, finding.column,
            f"{name} is not differentiated: {refused.why}", finding.source_line,
        )  # fmt: skip
        return CompileError(report([finding]), [finding])


def _declaration(name: str, type_: Type, is_reference: bool) -> str:
    """The declaration of a parameter by its type."""
    if not type_.is_pointer:
        return f"{type_.msl} {name}"
    element = type_.msl or type_.text.split()[-2]
    is_constant = "const " in type_.text and type_.space != "constant"
    words = [type_.space, *(["const"] if is_constant else []), element]
    return f"{' '.join(words)} {'&' if is_reference else '*'}{name}"


@functools.lru_cache(maxsize=16)
def text_of_kernel(kernel: Kernel) -> tuple[KernelText, str, EntryPoint, Options]:
    """The parsed text of a kernel's library, its source, the kernel's entry point and the options.

    Raises
    ------
    ArgumentError
        If the kernel comes from a bundle without its source.
    """
    origin = kernel._program.origin
    recipe = kernel._recipe[1] if len(kernel._recipe) > 1 else ()
    if origin is None or not recipe or not isinstance(recipe[0], tuple):
        raise ArgumentError(f"[{kernel.name}] its source is not known: load it by mtl.library.")
    source, file, options = recipe[0][:3]
    entry = origin[1]
    text = KernelText(source, file, options, kernel.device.target, entry)
    return text, source, entry, options
