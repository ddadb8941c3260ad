"""``metalloid run``: one kernel of a file on arrays from the shell."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metalloid.cli.progress import progress_after_a_second
from metalloid.cli.source_options import (
    add_constants,
    add_source_options,
    function_constants,
    number,
    source_arguments,
)
from metalloid.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from metalloid.kernels.library import Library

_ARGUMENT_HELP = """\
An argument, in the order of the buffer indices or as NAME=VALUE. VALUE is one of:
file.npy (an array), zeros:SHAPE:DTYPE or ones:SHAPE:DTYPE (zeros:1024x3:float32),
a number (2.5), numbers (1,2,3), or threadgroup:BYTES.
"""


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "run", help="run a kernel of a .metal file or of a bundle",
        description="Run a kernel once per thread of a grid and show or save its arrays.",
    )  # fmt: skip
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("kernel", metavar="KERNEL")
    parser.add_argument("--threads", required=True, metavar="X[,Y[,Z]]", help="size of the grid")
    parser.add_argument("--group-size", metavar="X[,Y[,Z]]", help="threads of a threadgroup")
    parser.add_argument(
        "--arg", dest="arguments", action="append", default=[], metavar="VALUE", help=_ARGUMENT_HELP
    )
    parser.add_argument(
        "--save", action="append", default=[], metavar="NAME=FILE.npy",
        help="save the array of parameter NAME (or of its position, from 0) afterwards",
    )  # fmt: skip
    add_constants(parser)
    add_source_options(parser)
    parser.add_argument("--device")
    parser.add_argument(
        "--check", action="store_true",
        help="look for data races and uninitialised memory, on the CPU; exit with 1 if there are",
    )  # fmt: skip
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    import numpy as np

    with progress_after_a_second("compiling"):
        lib = _library(options)
        for warning in lib.warnings:
            print(warning, file=sys.stderr)
        kernel = lib.function(options.kernel, function_constants(options))
    values = [_split(text) for text in options.arguments]
    positional = [_value(text) for name, text in values if not name]
    named = {name: _value(text) for name, text in values if name}
    arrays = {n: v for n, v in named.items() if isinstance(v, np.ndarray)}
    free = [p.name for p in kernel.signature.arguments if p.name not in named]
    for index, value in enumerate(positional):
        if isinstance(value, np.ndarray):
            arrays[free[index] if index < len(free) else str(index)] = value
    destinations = _destinations(options.save, arrays, positional)
    with progress_after_a_second("running"):
        event = kernel(
            *positional,
            threads=_extents(options.threads),
            group_size=_extents(options.group_size) if options.group_size else None,
            wait=True,
            check=options.check,
            **named,
        )
    print(f"{kernel.name}: {event.seconds:.3g} s on {kernel.device.name} ({kernel.engine})")
    for name, array in arrays.items():
        print(f"  {name}: {array.dtype} {array.shape} {_summary(array)}")
    for array, file in destinations:
        np.save(file, array)
    return 0


def _library(options: argparse.Namespace) -> Library:
    from metalloid.kernels.bundles.load import load_library
    from metalloid.kernels.library import library

    device = options.device or ("cpu" if options.check else None)
    if options.file.endswith(".mtlb"):
        return load_library(options.file, device)
    return library(path=options.file, device=device, **source_arguments(options))


def _destinations(
    items: Sequence[str], arrays: Mapping[str, Any], positional: Sequence[Any]
) -> list[tuple[np.ndarray, str]]:
    """The arrays that ``--save`` names, each with its file; called before the launch."""
    import numpy as np

    parameters = []
    for item in items:
        name, _, file = item.partition("=")
        array = arrays.get(name)
        if array is None and name.isdigit() and int(name) < len(positional):
            array = positional[int(name)]
        if not isinstance(array, np.ndarray):
            raise ArgumentError(
                f"[run] --save {item}: unknown array {name!r}; "
                f"known: {', '.join(arrays) or 'none'}."
            )
        if not file:
            raise ArgumentError(f"[run] --save {item}: write NAME=FILE.npy.")
        if not Path(file).absolute().parent.is_dir():
            raise ArgumentError(f"[run] --save {item}: its folder does not exist. Create it first.")
        parameters.append((array, file))
    return parameters


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    return (name, value) if equals and name.isidentifier() else ("", text)


def _value(text: str) -> Any:
    import numpy as np

    from metalloid.runtime.arguments.signature_binder import threadgroup_memory

    kind, _, rest = text.partition(":")
    if kind in ("zeros", "ones"):
        shape, _, dtype = rest.partition(":")
        try:
            extents = [int(extent) for extent in shape.split("x") if extent]
            return getattr(np, kind)(extents, _dtype(dtype or "float32"))
        except (ValueError, TypeError) as error:
            raise ArgumentError(f"[run] {text!r}: {error}. Write {kind}:1024x3:float32.") from None
    if kind == "threadgroup" and rest.isdigit():
        return threadgroup_memory(int(rest))
    if text.endswith(".npy"):
        if not Path(text).is_file():
            raise ArgumentError(f"[run] no such file: {text!r}.")
        return np.load(text)
    if "," in text:
        return tuple(_number(each) for each in text.split(",") if each)
    return _number(text)


def _number(text: str) -> float | int | bool:
    return number(text, "file.npy, nor zeros:SHAPE:DTYPE")


def _dtype(name: str) -> np.dtype:
    import numpy as np

    if name == "bfloat16":
        from metalloid.dtypes import scalar_type

        return scalar_type("bfloat").dtype
    return np.dtype(name)


def _extents(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(extent) for extent in text.replace("x", ",").split(","))
    except ValueError:
        raise ArgumentError(f"[run] {text!r} is not a size; write 1024 or 64,64.") from None


def _summary(array: np.ndarray) -> str:
    import numpy as np

    if array.size <= 8:
        return np.array2string(array, threshold=8)
    values = array.astype(np.float64)
    return f"min {values.min():.6g} mean {values.mean():.6g} max {values.max():.6g}"
