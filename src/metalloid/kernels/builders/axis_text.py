"""The MSL source that reductions and scans share: a source of mapped elements by row and index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metalloid.kernels.builders.builder_text import Argument, signature
from metalloid.kernels.generated_kernel import SIGNATURE, GeneratedKernel
from metalloid.kernels.sources import metal_source

#: Names that the texts of reductions and scans use themselves.
AXIS_NAMES = (
    "i",
    "a",
    "b",
    "index",
    "layout",
    "outer",
    "along",
    "reduce",
    "identity",
    "reduce_type",
)


#: Ids of the kernels whose threadgroups share the work on a row.
GROUP_IDS = (
    "uint group [[threadgroup_position_in_grid]]",
    "uint thread_index [[thread_index_in_threadgroup]]",
)
#: Parameters of the kernels that work on chunks of rows.
SIZES = ("constant uint &count", "constant uint &chunks")


@dataclass(frozen=True)
class AxisText:
    """The parts of the text of a reduction or a scan.

    Attributes
    ----------
    name : str
    arguments : tuple of Argument
    axes : (int, int)
        How many axes are outer, and how many go along the reduction.
    layout, types : str
        ``struct Layout``, and the types of the placeholders.
    reduce_type, preamble, map_expr, reduce_expr, identity, post_map_expr : str
    uses_index : bool
        Whether the mapped expression asks for ``i``.
    """

    name: str
    arguments: tuple[Argument, ...]
    axes: tuple[int, int]
    layout: str
    types: str
    reduce_type: str
    preamble: str
    map_expr: str
    reduce_expr: str
    identity: str
    post_map_expr: str
    uses_index: bool

    @property
    def inputs(self) -> list[Argument]:
        """The arguments that are read."""
        return [argument for argument in self.arguments if not argument.is_written]

    @property
    def outputs(self) -> list[Argument]:
        """The arguments that are written."""
        return [argument for argument in self.arguments if argument.is_written]

    def output_elements(self, axes: tuple[int, int]) -> str:
        """Statements that make the outputs' elements known by their names."""
        lines = (o.element("", element_index(o.name, axes)) for o in self.outputs)
        return "".join(f"  {line}\n" for line in lines)

    def generated(self, file: str, passes: str, finish: str) -> GeneratedKernel:
        """The whole text.

        Parameters
        ----------
        file : str
            The ``.metal`` file with what is the same in all of them.
        passes : str
            Kernels that work on rows of ``Inputs``.
        finish : str
            The kernel that writes the outputs, in whose end ``post_map_expr`` goes.
        """
        own = self.name + SIGNATURE
        return GeneratedKernel(
            self.name,
            (
                ("builders.metal", metal_source("metalloid.kernels.builders", "builders")),
                *self._functions(own),
                (file, metal_source("metalloid.kernels.builders", file.removesuffix(".metal"))),
                *self._source(own),
                (own, passes + finish.removesuffix("}\n")),
                (f"{self.name}.post_map_expr", f"{self.post_map_expr};\n"),
                (own, "}\n"),
            ),
        )

    def _functions(self, own: str) -> list[tuple[str, str]]:
        """``reduce_type``, the preamble, ``reduce(a, b)`` and ``identity()``."""
        return [
            (own, self.types),
            (f"{self.name}.preamble", f"{self.preamble}\n" if self.preamble else ""),
            (
                own,
                f"typedef {self.reduce_type} reduce_type;\n"
                "METAL_FUNC reduce_type reduce(reduce_type a, reduce_type b) {\n  return (\n",
            ),
            (f"{self.name}.expression", f"{self.reduce_expr}\n"),
            (own, "  );\n}\nMETAL_FUNC reduce_type identity() {\n  return (\n"),
            (f"{self.name}.identity", f"{self.identity}\n"),
            (own, "  );\n}\n"),
        ]

    def _source(self, own: str) -> list[tuple[str, str]]:
        """``struct Inputs``, whose ``element(outer, along)`` is the mapped element."""
        members = "".join(f"  {_member(argument)};\n" for argument in self.inputs)
        lines = [_local(argument, self.axes) for argument in self.inputs]
        if self.uses_index:
            lines.insert(0, f"    const uint i = uint({element_index('index', self.axes)});\n")
        return [
            (
                own,
                f"{self.layout}struct Inputs {{\n{members}  constant Layout *layout;\n\n"
                "  METAL_FUNC reduce_type element(uint outer, uint along) const {\n"
                f"{''.join(lines)}    return (\n",
            ),
            (f"{self.name}.map", f"{self.map_expr}\n"),
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
    index = element_index(argument.name, axes)
    return f"    const {argument.type} {argument.name} = {memory}[{index}];\n"


def element_index(name: str, axes: tuple[int, int]) -> str:
    """Where an argument's element lies, by ``outer`` and ``along``."""
    outer, along = axes
    terms = [f"element_at<{outer}>(outer, layout->outer, layout->{name}_outer)"]
    if along:
        terms.append(f"element_at<{along}>(along, layout->along, layout->{name}_along)")
    return " + ".join(terms)


def passes(inputs: Sequence[Argument], struct: str) -> list[tuple[str, list[str], str]]:
    """The passes over the arguments, and over the results of another pass.

    Parameters
    ----------
    struct : str
        The type of the results as a source of elements.

    Returns
    -------
    list of (str, list of str, str)
        Name, parameters, and the statement that defines ``inputs`` from them.
    """
    parameters = [*(argument.declaration() for argument in inputs), "constant Layout &layout"]
    values = [f"&{a.memory}" if a.form == "number" else a.memory for a in inputs]
    first = f"  const Inputs inputs = {{{', '.join([*values, '&layout'])}}};\n"
    following = f"  const {struct} inputs = {{memory, count}};\n"
    return [
        ("map", parameters, first),
        ("next", ["device const reduce_type *memory"], following),
    ]


def kernel_text(
    name: str, parameters: Sequence[str], ids: Sequence[str], body: str, threads: str = ""
) -> str:
    """A kernel; with `threads`, for threadgroups of that size."""
    limit = f"[[max_total_threads_per_threadgroup({threads})]]\n" if threads else ""
    return f"\n{limit}kernel void {name}(\n    {signature(parameters, ids)})\n{{\n{body}}}\n"
