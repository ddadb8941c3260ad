"""Kernels that derivatives of other kernels are: their parameters, text and launch."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from metalloid.differentiate.frontend.parse import text_of_kernel
from metalloid.differentiate.frontend.refused import Refused
from metalloid.differentiate.program.text import count_name
from metalloid.differentiate.program.tree import (
    Assign,
    AtomicAdd,
    Parameter,
    Program,
    flatten,
)
from metalloid.differentiate.program.types import FLOATS, Type
from metalloid.differentiate.textures import (
    bytes_of_texels,
    setting_numbers,
    unknown_settings,
)
from metalloid.errors import ArgumentError
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.library import Library, library
from metalloid.runtime.arguments.argument_binder import ThreadgroupMemory
from metalloid.runtime.launch.event import Event
from metalloid.runtime.textures.sampler import settings_of

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n\n"
#: Bytes of the number of a derivative.
_FLOAT = 4
Names = tuple[str, ...]


class DerivedKernel:
    """A kernel that computes derivatives of another one.

    Attributes
    ----------
    source : str
        MSL text: that of the kernel's library, and the derivative.
    wrt, outputs : tuple of str
        The parameters with derivatives that the kernel reads, and that it writes.
    kernel : Kernel
    """

    def __init__(
        self, derivation: Derivation, suffix: str, primal: Kernel, samplers: Mapping[str, str]
    ) -> None:
        self.source, self.wrt, self.outputs = derivation.source, derivation.wrt, derivation.outputs
        self.kernel, self._primal = derivation.function(suffix), primal
        names = [parameter.name for parameter in primal.signature.arguments]
        self._samplers = {name: names.index(sampler) for name, sampler in samplers.items()}
        derivatives = self.outputs + self.wrt if suffix == "vjp" else self.wrt + self.outputs
        #: Positions of textures and of their derivatives.
        self._textures = [
            (names.index(name), len(names) + number)
            for number, name in enumerate(derivatives)
            if primal.signature.arguments[names.index(name)].layout.texture is not None
        ]

    def __call__(
        self,
        *args: Any,
        threads: int | Sequence[int],
        group_size: int | Sequence[int] | None = None,
    ) -> Event:
        """Run it.

        Raises
        ------
        ArgumentError
            As calls of `Kernel`.
        KernelFault
            If it failed.
        """
        return self._run(args, threads, group_size)

    def _run(self, args: Sequence[Any], threads: Any, group_size: Any) -> Event:
        args = self._with_settings(args)
        return self.kernel(*args, threads=threads, group_size=group_size, wait=True)

    def _with_settings(self, args: Sequence[Any]) -> list[Any]:
        """Arguments, and the settings of samplers among them.

        Raises
        ------
        ArgumentError
            If the derivative of a texture is too small, or that of a sampler not known.
        """
        args, memory = without_threadgroup_memory(args)
        for position, derivative in self._textures:
            parameter = self._primal.signature.arguments[position]
            needed = bytes_of_texels(args[position], parameter.layout)
            if getattr(args[derivative], "nbytes", needed) < needed:
                raise ArgumentError(
                    f"[{self.kernel.name}] the derivative of {parameter.name!r} has {needed} "
                    f"bytes, got {args[derivative].nbytes}."
                )
        settings = []
        for name, position in self._samplers.items():
            sampler = args[position]
            unknown = unknown_settings(settings_of(sampler.word))
            if unknown:
                raise ArgumentError(
                    f"[{self.kernel.name}] samples with {' and '.join(unknown)} have no "
                    f"derivative, got {sampler!r}."
                )
            settings.append(np.array([setting_numbers(sampler)], self.kernel.dtype(name)))
        return [*args, *settings, *self._threadgroup_arguments(memory)]

    def _threadgroup_arguments(self, memory: Sequence[ThreadgroupMemory]) -> list[Any]:
        """Numbers of elements of threadgroup memory, the memory, and that of its derivatives."""
        parameters = self._primal.signature.threadgroup
        counts = {
            p.name: each.nbytes // p.layout.bytes
            for p, each in zip(parameters, memory, strict=False)
        }
        lanes = {p.name: p.layout.lanes for p in parameters}
        names = [p.name for p in self.kernel.signature.arguments]
        given = [np.uint32(counts[name]) for name in counts if count_name(name) in names]
        derivatives = [
            ThreadgroupMemory(_FLOAT * counts[name] * lanes[name])
            for name in (p.name.partition("_")[2] for p in self.kernel.signature.threadgroup)
            if name in counts
        ]
        return [*given, *memory, *derivatives]


def without_threadgroup_memory(
    args: Sequence[Any],
) -> tuple[list[Any], list[ThreadgroupMemory]]:
    """Arguments that are values, and those that are sizes of threadgroup memory."""
    memory = [arg for arg in args if isinstance(arg, ThreadgroupMemory)]
    return [arg for arg in args if not isinstance(arg, ThreadgroupMemory)], memory


class Derivation(NamedTuple):
    """The library of a derivative.

    Attributes
    ----------
    source, name : str
        Its text, and the name of the kernel that it is the derivative of.
    wrt, outputs : tuple of str
    library : Library
    constants : mapping
        Values of function constants.
    """

    source: str
    name: str
    wrt: Names
    outputs: Names
    library: Library
    constants: Mapping[Any, Any]

    def function(self, suffix: str) -> Kernel:
        """A kernel of the library."""
        return self.library._function(f"{self.name}_{suffix}", dict(self.constants))


def derive(
    kernel: Kernel,
    wrt: Sequence[str] | None,
    outputs: Sequence[str] | None,
    write: Callable[[Program, str, Names, Names], str],
) -> Derivation:
    """The library of a derivative, whose text `write` returns.

    Parameters
    ----------
    wrt, outputs : sequence of str, optional
        By default the floating-point parameters that the kernel only reads, and those it writes.
    write : callable
        From the program, the kernel's name, `wrt` and `outputs`.

    Raises
    ------
    CompileError
        At the line of what is not differentiated.
    ArgumentError
        If there is no such parameter.
    """
    text, source, entry, options = text_of_kernel(kernel)
    try:
        program = text.program()
        inputs, results = _resolve_names(kernel.name, program, wrt, outputs)
        order = [parameter.name for parameter in kernel.signature.arguments]
        program.parameters.sort(
            key=lambda p: order.index(p.name) if p.name in order else len(order)
        )
        name = re.sub(r"\W", "_", entry.name)
        written = write(program, name, inputs, results)
    except Refused as refused:
        raise text.error(refused, kernel.name) from None
    full = f"{source.rstrip()}\n\n{_HEAD}{written}"
    compiled = library(
        full, device=kernel.device, math_mode=options.math_mode,
        include_dirs=options.include_dirs, defines=dict(options.defines),
    )  # fmt: skip
    constants = kernel._program.origin[2] if kernel._program.origin else {}
    return Derivation(full, name, inputs, results, compiled, constants)


def written_parameters(kernel: Kernel) -> set[str]:
    """The parameters whose memory a kernel writes.

    Raises
    ------
    CompileError
        At the line of what is not differentiated.
    """
    text = text_of_kernel(kernel)[0]
    try:
        return _names_written(text.program())
    except Refused as refused:
        raise text.error(refused, kernel.name) from None


def _names_written(program: Program) -> set[str]:
    """The parameters that a program assigns or adds to."""
    targets = {
        statement.target.base.name
        for statement in flatten(program.body)
        if isinstance(statement, Assign | AtomicAdd)
    }
    return targets & {parameter.name for parameter in program.parameters}


def _resolve_names(
    kernel: str, program: Program, wrt: Sequence[str] | None, outputs: Sequence[str] | None
) -> tuple[Names, Names]:
    """The names of `wrt` and `outputs`, by default those that the kernel only reads and writes.

    Structs have derivatives only if they are named.
    """
    memory = [p for p in program.parameters if p.type.is_handle and p.type.space != "threadgroup"]
    structs = [p.name for p in memory if p.type.record and program.scalars(p.type) & set(FLOATS)]
    known = [p.name for p in memory if p.type.is_float or p.type.has_texel_derivatives]
    types = {p.name: p.type for p in memory}
    written = _names_written(program)
    wrt = [name for name in known if name not in written] if wrt is None else wrt
    outputs = [name for name in known if name in written] if outputs is None else outputs
    for name in (*wrt, *outputs):
        if name not in known and name not in structs:
            raise ArgumentError(
                f"[{kernel}] {name!r} is no pointer, reference or texture of floating-point "
                f"numbers; these are: {', '.join(known + structs) or 'none'}."
            )
        if name in structs and program.scalars(types[name]) & {"half", "bfloat"}:
            raise ArgumentError(f"[{kernel}] members of {name!r} are not float: use float for all.")
    return tuple(wrt), tuple(outputs)


def memory_type(type_: Type) -> str:
    """The type of a derivative in memory, which is packed if what it belongs to is.

    Of a struct it is the same struct, of a texture that of a texel.
    """
    if type_.texture is not None:
        return "float" if type_.is_depth else "float4"
    if type_.record:
        return type_.record
    return f"{'packed_' if type_.is_packed else ''}{type_.element.adjoint.msl}"


def as_constant(parameter: Parameter) -> Parameter:
    """A parameter of floats in device memory that is only read, as one in constant memory."""
    before, star, rest = parameter.declaration.partition("*")
    words, type_ = before.split(), parameter.type
    is_read = bool(star) and {"device", "const"} <= set(words)
    if not is_read or not type_.is_float or type_.is_aggregate:
        return parameter
    words = ["constant", *(word for word in words if word not in ("device", "const"))]
    return replace(parameter, declaration=f"{' '.join(words)} *{rest}")


def threadgroup_parameters(
    program: Program, active: Collection[str], prefix: str, element: str = ""
) -> list[str]:
    """Derivatives of threadgroup memory that is a parameter, by default of its type."""
    memory = program.threadgroup_parameters
    return [
        f"threadgroup {element or memory_type(p.type)} *{prefix}{p.name} "
        f"[[threadgroup({number + len(memory)})]]"
        for number, p in enumerate(p for p in memory if p.name in active)
    ]


def kernel_text(
    name: str, parameters: Sequence[Parameter], extra: Sequence[str], declared: Sequence[str],
    lines: Sequence[str], head: str, comment: str,
) -> str:  # fmt: skip
    """The text of a kernel."""
    ids = [p for p in parameters if not p.type.is_handle and p.attributes]
    values = [p for p in parameters if p not in ids]
    texts = [
        *(p.declaration + p.attributes * (p.type.space == "threadgroup") for p in values),
        *(text for text in extra if "[[" not in text),
        *(f"{p.declaration}{p.attributes}" for p in ids),
        *(text for text in extra if "[[" in text),
    ]
    indent = " " * len(f"kernel void {name}(")
    body = "".join(f"  {line}\n" for line in (*declared, *lines))
    joined = f",\n{indent}".join(texts)
    return f"// {comment}\nkernel void {name}({joined}) {{\n{head}{body}}}\n"
