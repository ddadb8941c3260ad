"""The families of ggml's kernels that have an oracle."""

from __future__ import annotations

import functools
from pathlib import Path

from mlx_tree.agreement import Family

from ggml_tree import (
    attention,
    convolution,
    deepseek,
    elementwise,
    experts,
    layout,
    linear,
    matmul,
    norms,
    recurrent,
    reductions,
    rope,
    rows,
    training,
)
from ggml_tree.source import Source

_MODULES = (
    matmul, experts, norms, rope, rows, elementwise, reductions, attention, layout, convolution,
    recurrent, linear, training, deepseek,
)  # fmt: skip


def families(folder: str | Path) -> tuple[Family, ...]:
    """The families, for the ggml whose ``ggml-metal.metal`` lies in `folder`."""
    source = Source(folder)
    return tuple(
        Family(
            name,
            (Source.FILE,),
            functools.partial(check, source),
            lambda entry, pattern=pattern: pattern.match(entry) is not None,
        )
        for module in _MODULES
        for name, check, pattern in module.FAMILIES
    )
