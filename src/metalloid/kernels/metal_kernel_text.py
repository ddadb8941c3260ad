"""The MSL source of a `metal_kernel`: a signature around a body, and what was written where.

A pure function of descriptions: nothing here knows arrays or devices.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from metalloid.kernels.generated_kernel import SIGNATURE, GeneratedKernel
from metalloid.kernels.metal_kernel_names import used_identifiers
from metalloid.kernels.sources import metal_source
from metalloid.msl.signature import IDS

#: The utilities every body may use, at the start of each generated text.
UTILITIES = "metal_kernel_utils.metal"

#: The ids that are vectors; all others are single numbers.
_VECTOR_IDS = frozenset(
    (
        "dispatch_threads_per_threadgroup",
        "grid_origin",
        "grid_size",
        "thread_position_in_grid",
        "thread_position_in_threadgroup",
        "threadgroup_position_in_grid",
        "threadgroups_per_grid",
        "threads_per_grid",
        "threads_per_threadgroup",
    )
)


@dataclass(frozen=True)
class InputText:
    """The properties of an input in the text.

    Attributes
    ----------
    name : str
    type : str
        Of its elements, in MSL: ``"float16_t"``.
    is_scalar : bool
        No axes: the body uses ``x``, not ``x[0]``.
    is_small : bool
        Few enough elements for ``constant`` memory.
    is_written : bool
        Updated in place.
    is_atomic : bool
        Declared as atomic, if it is written.
    """

    name: str
    type: str
    is_scalar: bool = False
    is_small: bool = False
    is_written: bool = False
    is_atomic: bool = False

    def declaration(self) -> str:
        """The parameter without its attribute."""
        if self.is_written:
            return OutputText(self.name, self.type, self.is_atomic).declaration()
        space = "constant" if self.is_small else "device"
        return f"const {space} {self.type}{'&' if self.is_scalar else '*'} {self.name}"

    def companions(self) -> dict[str, str]:
        """Parameters that describe its layout, by name; the body may ask for them."""
        if self.is_scalar:
            return {}
        return {
            f"{self.name}_shape": f"const constant int* {self.name}_shape",
            f"{self.name}_strides": f"const constant int64_t* {self.name}_strides",
            f"{self.name}_ndim": f"const constant int& {self.name}_ndim",
        }

    def suffix(self) -> str:
        """Its part of the function's name."""
        if self.is_written:
            return self.type
        return self.type + ("s" if self.is_scalar else "c" if self.is_small else "")


@dataclass(frozen=True)
class OutputText:
    """The properties of an output in the text; attributes as in `InputText`."""

    name: str
    type: str
    is_atomic: bool = False

    def declaration(self) -> str:
        """The parameter without its attribute."""
        return f"device {f'atomic<{self.type}>' if self.is_atomic else self.type}* {self.name}"


@dataclass(frozen=True)
class TemplateArgument:
    """A template parameter and its value: ``TemplateArgument("int", "N", "3")``."""

    kind: str
    name: str
    value: str


@functools.lru_cache(maxsize=256)
def generate(
    name: str,
    inputs: tuple[InputText, ...],
    outputs: tuple[OutputText, ...],
    template: tuple[TemplateArgument, ...],
    source: str,
    header: str,
) -> GeneratedKernel:
    """Write the kernel around the body `source`.

    Examples
    --------
    >>> kernel = generate("copy", (InputText("x", "float"),), (OutputText("y", "float"),), (),
    ...                   "y[grid_size.x] = x[0];", "")
    >>> print(kernel.own_text)
    [[kernel]] void custom_kernel_copy_float_float(
      const device float* x [[buffer(0)]],
      device float* y [[buffer(1)]],
      uint3 grid_size [[grid_size]]) {
    y[grid_size.x] = x[0];
    }
    """
    function = _function_name(name, inputs, outputs, template)
    parameters = _parameters(inputs, outputs, template, used_identifiers(source, header))
    head = f"[[kernel]] void {function}(\n  {f',{chr(10)}  '.join(parameters)}) {{\n"
    end = "}\n"
    if template:
        kinds = ", ".join(f"{argument.kind} {argument.name}" for argument in template)
        instance = f"{function}<{', '.join(argument.value for argument in template)}>"
        head = f"template <{kinds}>\n{head}"
        end += (
            f'\ntemplate [[host_name("{function}")]] [[kernel]] decltype({instance}) {instance};\n'
        )
    pieces = (
        (UTILITIES, metal_source("metalloid.kernels", UTILITIES.removesuffix(".metal"))),
        (f"{name}.header", f"{header}\n" if header and not header.endswith("\n") else header),
        (name + SIGNATURE, head),
        (f"{name}.source", f"{source}\n"),
        (name + SIGNATURE, end),
    )
    return GeneratedKernel(function, pieces)


def _function_name(
    name: str,
    inputs: Sequence[InputText],
    outputs: Sequence[OutputText],
    template: Sequence[TemplateArgument],
) -> str:
    words = [f"custom_kernel_{name}"]
    if template:
        words += ["", *(argument.value.replace("-", "_") for argument in template)]
    words += [argument.suffix() for argument in inputs]
    words += [output.type for output in outputs]
    return "_".join(words)


def _parameters(
    inputs: Sequence[InputText],
    outputs: Sequence[OutputText],
    template: Sequence[TemplateArgument],
    used: frozenset[str],
) -> list[str]:
    """Every parameter with its attribute, in the order of the text."""
    # A name that is given to something means that, and nothing of ours.
    taken = {x.name for x in inputs} | {x.name for x in outputs} | {x.name for x in template}
    used_names = used - taken
    memory = []
    for argument in inputs:
        memory.append(argument.declaration())
        memory += [text for name, text in argument.companions().items() if name in used_names]
    memory += [output.declaration() for output in outputs]
    ids = [
        f"{'uint3' if name in _VECTOR_IDS else 'uint'} {name} [[{name}]]"
        for name in sorted(IDS & used_names)
    ]
    return [f"{text} [[buffer({index})]]" for index, text in enumerate(memory)] + ids
