"""The MSL text that reductions and scans share: a source of mapped elements by row and place."""

from __future__ import annotations

from collections.abc import Sequence

from metalloid.kernels.builder_text import Argument, signature
from metalloid.kernels.generated_kernel import SIGNATURE

#: Names that the texts of reductions and scans use themselves, beside those of the user's.
AXIS_NAMES = (
    "i",
    "a",
    "b",
    "index",
    "layout",
    "kept",
    "along",
    "reduce",
    "identity",
    "reduce_type",
)


def function_pieces(
    name: str, types: str, reduce_type: str, preamble: str, expression: str, identity: str
) -> list[tuple[str, str]]:
    """``reduce_type``, the preamble, ``reduce(a, b)`` and ``identity()``."""
    own = name + SIGNATURE
    return [
        (own, types),
        (f"{name}.preamble", f"{preamble}\n" if preamble else ""),
        (
            own,
            f"typedef {reduce_type} reduce_type;\n"
            "METAL_FUNC reduce_type reduce(reduce_type a, reduce_type b) {\n  return (\n",
        ),
        (f"{name}.expression", f"{expression}\n"),
        (own, "  );\n}\nMETAL_FUNC reduce_type identity() {\n  return (\n"),
        (f"{name}.identity", f"{identity}\n"),
        (own, "  );\n}\n"),
    ]


def source_pieces(
    name: str,
    inputs: Sequence[Argument],
    axes: tuple[int, int],
    layout: str,
    expression: str,
    uses_index: bool,
) -> list[tuple[str, str]]:
    """``struct Inputs``, whose ``element(kept, along)`` is the mapped element.

    Parameters
    ----------
    axes : (int, int)
        How many axes are kept, and how many go along the reduction.
    uses_index : bool
        Whether the expression asks for ``i``.
    """
    members = "".join(f"  {_member(argument)};\n" for argument in inputs)
    lines = [_local(argument, axes) for argument in inputs]
    if uses_index:
        lines.insert(0, f"    const uint i = uint({element_place('index', axes)});\n")
    own = name + SIGNATURE
    return [
        (
            own,
            f"{layout}struct Inputs {{\n{members}  constant Layout *layout;\n\n"
            "  METAL_FUNC reduce_type element(uint kept, uint along) const {\n"
            f"{''.join(lines)}    return (\n",
        ),
        (f"{name}.map", f"{expression}\n"),
        (own, "    );\n  }\n};\n"),
    ]


def _member(argument: Argument) -> str:
    if argument.form == "number":
        return f"constant {argument.type} *{argument.name}_memory"
    return argument.declaration()


def _local(argument: Argument, axes: tuple[int, int]) -> str:
    if argument.form == "raw":
        return ""
    memory = f"{argument.name}_memory"
    if argument.form == "number":
        return f"    const {argument.type} {argument.name} = *{memory};\n"
    place = element_place(argument.name, axes)
    return f"    const {argument.type} {argument.name} = {memory}[{place}];\n"


def element_place(name: str, axes: tuple[int, int]) -> str:
    """Where an argument's element lies, by ``kept`` and ``along``."""
    kept, along = axes
    parts = [f"element_at<{kept}>(kept, layout->kept, layout->{name}_kept)"]
    if along:
        parts.append(f"element_at<{along}>(along, layout->along, layout->{name}_along)")
    return " + ".join(parts)


def input_parameters(inputs: Sequence[Argument]) -> list[str]:
    """The parameters that a kernel makes an ``Inputs`` of."""
    return [*(argument.declaration() for argument in inputs), "constant Layout &layout"]


def inputs_value(inputs: Sequence[Argument]) -> str:
    """The statement that makes it."""
    values = [f"&{a.memory}" if a.form == "number" else a.memory for a in inputs]
    return f"  const Inputs inputs = {{{', '.join([*values, '&layout'])}}};\n"


def kernel_text(
    name: str, parameters: Sequence[str], ids: Sequence[str], body: str, threads: str = ""
) -> str:
    """A kernel; with `threads`, for threadgroups of that size."""
    limit = f"[[max_total_threads_per_threadgroup({threads})]]\n" if threads else ""
    return f"\n{limit}kernel void {name}(\n    {signature(parameters, ids)})\n{{\n{body}}}\n"
