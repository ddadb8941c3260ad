"""Signatures of kernels as Python's stubs, for type checkers and editors."""

from __future__ import annotations

import keyword

from metalloid.msl.layout import Layout
from metalloid.msl.signature import Signature

_MEMORY = "np.ndarray | mtl.Array | mtl.Buffer"
_NUMBERS = {"b": "bool", "i": "int", "u": "int", "f": "float"}


def _type_of(layout: Layout) -> str:
    """Python's type of the arguments that a parameter takes."""
    if layout.form == "texture":
        return "np.ndarray | mtl.Texture"
    if layout.form == "sampler":
        return "mtl.Sampler"
    if layout.space == "threadgroup":
        return "Any"
    if layout.form != "reference" or layout.space != "constant":
        return _MEMORY
    if layout.kind == "O":
        return f"Mapping[str, Any] | mtl.ArgumentBuffer | {_MEMORY}"
    if layout.lanes * layout.columns > 1:
        return f"Sequence[{_NUMBERS.get(layout.kind, 'Any')}] | {_MEMORY}"
    return f"{_NUMBERS.get(layout.kind, 'Any')} | {_MEMORY}"


def stub_of(signature: Signature) -> str:
    """A function with the parameters of a kernel, each with its declaration in Metal."""
    lines = [f"def {signature.name}("]
    for parameter in (*signature.arguments, *signature.threadgroup):
        name = parameter.name + "_" * keyword.iskeyword(parameter.name)
        lines.append(f"    {name}: {_type_of(parameter.layout)},  # {parameter.declaration}")
    return "\n".join(
        (
            *lines,
            "    *,",
            "    threads: int | tuple[int, ...],",
            "    group_size: int | tuple[int, ...] | None = None,",
            ") -> mtl.Event: ...",
        )
    )
