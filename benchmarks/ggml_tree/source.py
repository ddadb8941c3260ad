"""Facts of ggml's own headers: argument structs, tables of the formats, numbers."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np

import metalloid as mtl

_SCALARS = {
    "bool": np.bool_, "float": np.float32, "char": np.int8, "int8_t": np.int8, "uint8_t": np.uint8,
    "int16_t": np.int16, "uint16_t": np.uint16, "int": np.int32, "int32_t": np.int32,
    "uint32_t": np.uint32, "int64_t": np.int64, "uint64_t": np.uint64, "size_t": np.uint64,
}  # fmt: skip
_STRUCT = re.compile(r"typedef struct\s*\{([^}]*)\}\s*ggml_metal_kargs_(\w+);")
_FIELD = re.compile(r"^\s*(\w+)\s+(\w+)(?:\[(\d+)\])?;", re.M)
_TABLE = re.compile(r"^GGML_TABLE_BEGIN\((\w+), (\w+), \w+\)(.*?)^GGML_TABLE_END", re.S | re.M)
_NUMBER = re.compile(r"^#define\s+(\w+)\s+(\d+)\b", re.M)


class Source:
    """ggml's sources.

    Parameters
    ----------
    folder : path
        Where ``ggml-metal.metal`` lies; ``ggml-common.h`` lies there or next to the folder.
    tensors : bool
        Whether matrices are multiplied by the tensors of Metal 4, as on newer Macs.
    """

    FILE = "ggml-metal.metal"

    def __init__(self, folder: str | Path, tensors: bool = False) -> None:
        self.folder, self.tensors = Path(folder), tensors

    def library(self, **options: Any) -> mtl.Library:
        """All kernels, as ggml compiles them on a Mac that has bfloat, with more options."""
        return mtl.library(
            path=self.folder / self.FILE,
            include_dirs=[self.folder, self.folder.parent],
            defines={"GGML_METAL_HAS_BF16": 1}
            | ({"GGML_METAL_HAS_TENSOR": 1} if self.tensors else {}),
            **options,
        )

    def _header(self, name: str) -> str:
        path = self.folder / name
        return (path if path.exists() else self.folder.parent / name).read_text("utf-8")

    @functools.cached_property
    def _structs(self) -> dict[str, str]:
        text = self._header("ggml-metal-impl.h")
        return {name: body for body, name in _STRUCT.findall(text)}

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """Numbers that the host and the kernels share: ``N_R0_Q4_0``."""
        return {k: int(v) for k, v in _NUMBER.findall(self._header("ggml-metal-impl.h"))}

    @functools.cached_property
    def tables(self) -> dict[str, np.ndarray]:
        """The code books of the formats."""
        tables = {}
        for type_, name, body in _TABLE.findall(self._header("ggml-common.h")):
            numbers = [int(n, 0) for n in re.findall(r"-?\b(?:0x[0-9a-fA-F]+|\d+)", body)]
            tables[name] = np.array(numbers, _SCALARS[type_])
        return tables

    def arguments(self, struct: str, **values: object) -> np.ndarray:
        """A filled ``ggml_metal_kargs_<struct>``; `values` may hold more than it has fields."""
        fields = [
            (name, _SCALARS[type_], (int(count),) if count else ())
            for type_, name, count in _FIELD.findall(self._structs[struct])
        ]
        record = np.zeros(1, np.dtype(fields, align=True))
        for name, _, _ in fields:
            record[name] = values[name]
        return record


def extents(array: np.ndarray, digit: str = "", columns: int | None = None) -> dict[str, int]:
    """Sizes and strides of an array as ggml names them, innermost first: ``ne00``, ``nb01``.

    Parameters
    ----------
    digit : str
        ``"0"`` for the first operand, ``"1"`` for the second, nothing for the result.
    columns : int, optional
        Elements of a row, where the array holds them in packed form.
    """
    shape = (1,) * (4 - array.ndim) + array.shape
    strides = (array.nbytes,) * (4 - array.ndim) + array.strides
    sizes = {f"ne{digit}{i}": n for i, n in enumerate(reversed(shape))}
    sizes |= {f"nb{digit}{i}": n for i, n in enumerate(reversed(strides))}
    if columns is not None:
        sizes[f"ne{digit}0"] = columns
    return sizes


def run(kernel, arguments, groups, group_size, threadgroup_bytes=0) -> None:
    """Launch as ggml does: untyped memory, and a number of threadgroups."""
    size = (*group_size, 1, 1)[:3]
    grid = tuple(count * width for count, width in zip((*groups, 1, 1)[:3], size, strict=True))
    memory = [mtl.threadgroup_memory(max(threadgroup_bytes, 16))] * len(
        kernel.signature.threadgroup
    )
    raw = [memoryview(array.reshape(-1).view(np.uint8)) for array in arguments]
    kernel(*raw, *memory, threads=grid, group_size=size)
