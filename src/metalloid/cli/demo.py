"""``metalloid demo``: a Julia set drawn by a Metal kernel."""

from __future__ import annotations

import argparse
import importlib.resources
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metalloid.cli.progress import progress_after_a_second

if TYPE_CHECKING:
    import numpy as np
    from rich.text import Text

_UPPER_HALF_BLOCK = "\N{UPPER HALF BLOCK}"


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "demo", help="draw a Julia set with a Metal kernel",
        description="Compile a Metal kernel, draw a Julia set with it, and say how fast that was.",
    )  # fmt: skip
    parser.add_argument("--size", type=int, default=1024, help="pixels per side (default 1024)")
    parser.add_argument(
        "--time", type=float, default=51.0, help="member of the family of Julia sets, in seconds"
    )
    parser.add_argument("--output", metavar="FILE.png", help="write the image to a PNG file")
    parser.add_argument("--device")
    parser.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    import numpy as np
    from rich.console import Console

    from metalloid.errors import ArgumentError
    from metalloid.kernels.library import library
    from metalloid.runtime.devices.registry import get_device

    if not 1 <= options.size <= 32768:
        raise ArgumentError(f"[demo] --size {options.size} is not between 1 and 32768.")
    if options.output and not Path(options.output).absolute().parent.is_dir():
        raise ArgumentError(
            f"[demo] --output {options.output}: its folder does not exist. Create it first."
        )
    console = Console()
    started = time.perf_counter()
    with progress_after_a_second("preparing the device (once per machine)"):
        device = get_device(options.device)
    ready = time.perf_counter()
    source = importlib.resources.files("metalloid.cli").joinpath("julia.metal").read_text("utf-8")
    with progress_after_a_second("compiling"):
        kernel = library(source, device=device).julia
    compiled = time.perf_counter()
    image = np.zeros((options.size, options.size, 4), np.uint8)
    with progress_after_a_second("drawing"):
        runs = [
            kernel(image, options.time, threads=(options.size, options.size)).seconds
            for _ in range(3)
        ]
    if options.output:
        _save(image, options.output)
    if console.is_terminal:
        console.print(_picture(image))
    seconds = min(runs)
    rate = options.size**2 / seconds / 1e6
    for name, text in (
        ("kernel", f"julia.metal: {kernel.signature}"),
        ("device", f"{device.name}: {device.info().description}"),
        ("engine", kernel.engine),
        (
            "time",
            f"{seconds * 1e3:.2f} ms for {options.size} x {options.size} pixels "
            f"({rate:.0f} Mpixel/s); compiled in {(compiled - ready) * 1e3:.0f} ms, "
            f"device ready in {(ready - started) * 1e3:.0f} ms",
        ),
        ("picture", options.output or "not saved; --output julia.png writes it to a file"),
    ):
        console.print(f"{name:8} {text}", highlight=False, markup=False, soft_wrap=True)
    return 0


def _save(image: np.ndarray, file: str) -> None:
    from PIL import Image

    from metalloid.errors import ArgumentError

    try:
        Image.fromarray(image).save(file)
    except (OSError, ValueError) as error:  # ValueError: of a name without a format
        raise ArgumentError(f"[demo] --output {file}: {error}.") from None


def _picture(image: np.ndarray) -> Text:
    """The image in half blocks: each character shows two pixels, one above the other."""
    import numpy as np
    from rich.color import Color
    from rich.style import Style
    from rich.text import Text

    size = shutil.get_terminal_size()
    columns = max(2, min(size.columns - 1, 2 * (size.lines - 8), 96))
    pick = np.linspace(0, image.shape[0] - 1, columns - columns % 2).astype(int)
    small = image[pick][:, np.linspace(0, image.shape[1] - 1, columns).astype(int)]
    text = Text(no_wrap=True)
    for upper, lower in zip(small[::2], small[1::2], strict=True):
        for above, below in zip(upper, lower, strict=True):
            text.append(
                _UPPER_HALF_BLOCK,
                Style(color=Color.from_rgb(*above[:3]), bgcolor=Color.from_rgb(*below[:3])),
            )
        text.append("\n")
    return text
