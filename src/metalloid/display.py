"""Pictures and HTML of objects, for notebooks."""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_MIN_EXTENT = 16  # smaller arrays are read as numbers
_MAX_EXTENT = 8192
_CHANNELS = (3, 4)


def is_image(shape: Sequence[int], dtype: np.dtype[Any]) -> bool:
    """Whether an array has the shape and the type of an image.

    That is ``(height, width)`` of bytes, or ``(height, width, 3 or 4)`` of bytes or floats.

    Examples
    --------
    >>> import numpy as np
    >>> is_image((64, 64, 3), np.dtype("float32")), is_image((64, 64), np.dtype("float32"))
    (True, False)
    """
    if len(shape) not in (2, 3) or not all(_MIN_EXTENT <= n <= _MAX_EXTENT for n in shape[:2]):
        return False
    if len(shape) == 2:
        return dtype == "uint8"
    return shape[2] in _CHANNELS and (dtype == "uint8" or dtype.kind == "f")


def png(pixels: np.ndarray) -> bytes | None:
    """A PNG file of an image; None for floats that are not colours, from 0 to 1."""
    import numpy as np
    from PIL import Image

    if pixels.dtype != np.uint8:
        if not ((pixels >= 0) & (pixels <= 1)).all():
            return None
        pixels = np.rint(pixels.astype(np.float32) * 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "png")
    return file.getvalue()


def html_table(title: str, rows: Iterable[Sequence[object]], heads: Sequence[str] = ()) -> str:
    """A table as HTML.

    Examples
    --------
    >>> html_table("kernel", [("engine", "a < b")])
    '<b>kernel</b><table><tr><td>engine</td><td>a &lt; b</td></tr></table>'
    """
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return (
        f"<b>{html.escape(title)}</b><table>" + f"<tr>{head}</tr>" * bool(heads) + f"{body}</table>"
    )


def html_section(title: str, text: str) -> str:
    """A text that opens when its title is clicked, as HTML.

    Examples
    --------
    >>> html_section("source", "a < b")
    '<details><summary>source</summary><pre>a &lt; b</pre></details>'
    """
    return (
        f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"
    )
