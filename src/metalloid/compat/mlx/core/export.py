"""Functions in files, and graphs as text."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import metalloid as mtl
from metalloid.arrays.files.npy import read_npy, write_npy
from metalloid.compat.mlx.core.array import array, wrap
from metalloid.compat.mlx.core.tape import OPERATIONS, Recording, Step, dtype_named, recorded
from metalloid.compat.mlx.core.tree import arrays_of
from metalloid.runtime.atomic_file import atomic_file

__all__ = [
    "FunctionExporter", "export_function", "export_to_dot", "exporter", "import_function",
]  # fmt: skip

_VERSION = 1
_PROGRAM = "program.json"
#: Numbers that MLX reports for the bases of logarithms.
_BASES = {"log2": 0, "log10": 1, "log": 2}
_PRIMITIVES = {"astype": "AsType", "matmul": "Matmul"}


def export_function(file_or_callback: Any, fun: Callable[..., Any], *args: Any,
                    shapeless: bool = False, metadata: str | None = None,
                    **kwargs: Any) -> None:  # fmt: skip
    """Save what a function computes for arguments like some given ones.

    The file is metalloid's; MLX has another format.

    Parameters
    ----------
    file_or_callback : str or callable
        A callable gets the record step by step, as dictionaries.
    fun : callable
    shapeless : bool
        Whether arguments of other shapes may be given, of the same number of axes.
    metadata : str, optional
        A text to store in the file.

    Raises
    ------
    ValueError
        If arguments or results are not arrays.
    """
    _check_metadata(metadata)
    if callable(file_or_callback):
        if metadata is not None:
            raise ValueError("[export_function] metadata needs a file.")
        _report(file_or_callback, _traced(fun, *_inputs(args, kwargs), shapeless))
        return
    with exporter(file_or_callback, fun, shapeless=shapeless, metadata=metadata) as writer:
        writer(*args, **kwargs)


def _check_metadata(metadata: Any) -> None:
    if metadata is not None and not isinstance(metadata, str):
        raise TypeError("export_function(): incompatible function arguments: metadata is a str.")


class _Record:
    """A function for arguments of some types."""

    def __init__(self, inputs: list[Any], keywords: list[str], shapeless: bool,
                 recording: Recording) -> None:  # fmt: skip
        #: Type and shape of each argument; those with keywords are last.
        self.inputs, self.keywords, self.shapeless = inputs, keywords, shapeless
        self.recording = recording

    def accepts(self, positional: Sequence[array], named: dict[str, array]) -> bool:
        """Whether it is for such arguments."""
        if sorted(named) != sorted(self.keywords):
            return False
        values = [*positional, *(named[key] for key in self.keywords)]
        if len(values) != len(self.inputs):
            return False
        for value, (dtype, shape) in zip(values, self.inputs, strict=True):
            is_alike = value.ndim == len(shape) if self.shapeless else value.shape == tuple(shape)
            if value.dtype._name != dtype or not is_alike:
                return False
        return True

    def __call__(self, positional: Sequence[array], named: dict[str, array]) -> list[array]:
        return self.recording.run([*positional, *(named[key] for key in self.keywords)])


def _inputs(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[array], dict[str, array]]:
    """The arguments of a call: arrays, or one list of them, or a list and a dictionary.

    Raises
    ------
    ValueError
        If they are something else.
    """
    named = dict(kwargs)
    if args and isinstance(args[-1], dict):
        named |= args[-1]
        args = args[:-1]
    if len(args) == 1 and isinstance(args[0], list | tuple):
        args = tuple(args[0])
    for value in (*args, *named.values()):
        if not isinstance(value, array):
            raise ValueError(
                "[export_function] Inputs can either be a variable number of positional and "
                "keyword arrays or a single tuple and/or dictionary of arrays."
            )
    return list(args), named


def _traced(fun: Callable[..., Any], positional: list[array], named: dict[str, array],
            shapeless: bool) -> _Record:  # fmt: skip
    keywords = sorted(named)
    given = [*positional, *(named[key] for key in keywords)]

    def call(values: list[array]) -> Sequence[array]:
        count = len(positional)
        value = fun(*values[:count], **dict(zip(keywords, values[count:], strict=True)))
        outputs = [value] if isinstance(value, array) else value
        if not isinstance(outputs, list | tuple) or not all(isinstance(o, array) for o in outputs):
            raise ValueError(
                "[export_function] Outputs must be either a single array a tuple or list of arrays."
            )
        return outputs

    types = [(value.dtype._name, list(value.shape)) for value in given]
    recording = recorded("export_function", call, given, reads_values=True)
    return _Record(types, keywords, shapeless, recording)


class FunctionExporter:
    """Saver of a function for several kinds of arguments; see `exporter`."""

    def __init__(self, file: str, fun: Callable[..., Any], shapeless: bool, metadata: str) -> None:
        self._file, self._fun, self._shapeless = file, fun, shapeless
        self._metadata = metadata
        self._records: list[_Record] = []
        self._is_closed = False

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Add a record of the function for arguments like these."""
        if self._is_closed:
            raise RuntimeError("[FunctionExporter] Attempting to write after exporting is closed.")
        self._records.append(_traced(self._fun, *_inputs(args, kwargs), self._shapeless))

    def __enter__(self) -> FunctionExporter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write the file."""
        if not self._is_closed:
            self._is_closed = True
            _write(self._file, self._records, self._metadata)


def exporter(file: str, fun: Callable[..., Any], *, shapeless: bool = False,
             metadata: str | None = None) -> FunctionExporter:  # fmt: skip
    """A context in which calls record a function for several kinds of arguments."""
    _check_metadata(metadata)
    return FunctionExporter(os.fspath(file), fun, shapeless, metadata or "")


def _write(file: str, records: list[_Record], metadata: str) -> None:
    names: dict[int, str] = {}  # of nodes: records share constants
    constants: dict[str, array] = {}
    described = []
    for record in records:
        own = {}
        for number, value in record.recording.constants.items():
            name = names.setdefault(id(value._a._node), str(len(names)))
            constants[name] = value
            own[number] = name
        described.append({
            "inputs": record.inputs, "keywords": record.keywords, "shapeless": record.shapeless,
            "steps": record.recording.steps, "outputs": record.recording.outputs, "constants": own,
        })  # fmt: skip
    program = {"version": _VERSION, "metadata": metadata, "records": described}
    with atomic_file(Path(file)) as opened, zipfile.ZipFile(opened, "w") as archive:
        archive.writestr(_PROGRAM, json.dumps(program))
        for name, value in constants.items():
            buffer = io.BytesIO()
            write_npy(buffer, np.asarray(value._a))
            archive.writestr(f"{name}.npy", buffer.getvalue())


def import_function(file: str, return_metadata: bool = False) -> Any:
    """Load a function that `export_function` has saved.

    Raises
    ------
    RuntimeError
        If the file cannot be read.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            program = json.loads(archive.read(_PROGRAM))
            constants = {
                name.removesuffix(".npy"): wrap(mtl.asarray(_elements(archive, name)))
                for name in archive.namelist() if name != _PROGRAM
            }  # fmt: skip
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise RuntimeError(f"[import_function] Failed to read {file!r}: {error}") from None
    if program["version"] != _VERSION:
        raise RuntimeError(f"[import_function] {file!r} is of another version.")
    records = [_loaded(entry, constants) for entry in program["records"]]

    def imported(*args: Any, **kwargs: Any) -> list[array]:
        positional, named = _inputs(args, kwargs)
        for record in records:
            if record.accepts(positional, named):
                return record(positional, named)
        kinds = [(value.dtype._name, value.shape) for value in (*positional, *named.values())]
        raise ValueError(
            "[import_function::call] No imported function found which matches the given inputs "
            f"{kinds} and keywords {sorted(named)}."
        )

    return (imported, program["metadata"]) if return_metadata else imported


def _elements(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with tempfile.TemporaryFile() as file:  # the reader asks for its size
        file.write(archive.read(name))
        file.seek(0)
        return read_npy(file, name)


def _loaded(entry: dict[str, Any], constants: dict[str, array]) -> _Record:
    steps = [Step(*step) for step in entry["steps"]]
    for step in steps:
        if step.operation not in OPERATIONS:
            raise RuntimeError(f"[import_function] there is no operation {step.operation!r}.")
    own = {int(number): constants[name] for number, name in entry["constants"].items()}
    recording = Recording(steps, own, entry["outputs"])
    return _Record(entry["inputs"], entry["keywords"], entry["shapeless"], recording)


def _report(callback: Callable[[dict[str, Any]], Any], record: _Record) -> None:
    """Pass a record to a function of the user, as MLX does."""
    names = [f"v{k}" for k in range(len(record.inputs))]
    types = [(name, shape, dtype_named(dtype))
             for name, (dtype, shape) in zip(names, record.inputs, strict=True)]  # fmt: skip
    first = len(types) - len(record.keywords)
    callback({"type": "inputs", "inputs": types})
    callback({"type": "keyword_inputs",
              "keywords": list(zip(record.keywords, names[first:], strict=True))})  # fmt: skip
    callback({"type": "outputs", "outputs": [f"v{number}" for number in record.recording.outputs]})
    constants = [(f"v{k}", value) for k, value in record.recording.constants.items()]
    callback({"type": "constants", "constants": constants})
    for operation, args, named, results in record.recording.steps:
        name = operation.rpartition(":")[2]
        values = [*args, *named.values()]
        parameters = (
            [_BASES[name]]
            if name in _BASES
            else [
                dtype_named(v["dtype"]) if isinstance(v, dict) and "dtype" in v else v
                for v in values
                if not (isinstance(v, dict) and "array" in v)
            ]
        )
        callback({
            "type": "primitive", "name": _PRIMITIVES.get(name) or name.title().replace("_", ""),
            "inputs": [f"v{v['array']}" for v in values if isinstance(v, dict) and "array" in v],
            "outputs": [f"v{number}" for number in results], "arguments": parameters,
        })  # fmt: skip


def export_to_dot(file: Any, *args: Any, **kwargs: Any) -> None:
    """Write the graph of arrays in the language of Graphviz; keywords name arrays."""
    roots = arrays_of((args, kwargs))
    if not roots:
        raise ValueError("[export_to_dot] expected arrays.")
    lines, known = ["digraph {"], {}
    pending = [root._a._node for root in roots]
    while pending:
        node = pending.pop()
        if id(node) in known:
            continue
        known[id(node)] = node
        shape = ", ".join(map(str, node.shape))
        lines.append(f'  n{id(node)} [label="{node.kind} ({shape}) {node.dtype}"];')
        for arg in node.args:
            lines.append(f"  n{id(arg)} -> n{id(node)};")
            pending.append(arg)
    text = "\n".join([*lines, "}", ""])
    if hasattr(file, "write"):
        file.write(text)
    else:
        with open(file, "w", encoding="utf-8") as opened:
            opened.write(text)
