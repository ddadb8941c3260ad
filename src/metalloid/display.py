"""Pictures and HTML of objects, for notebooks."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_MIN_EXTENT = 16  # smaller arrays are read as numbers
_MAX_EXTENT = 8192
_CHANNELS = (3, 4)


def _escaped(text: str) -> str:
    import html  # here, as most programs show nothing

    return html.escape(text)


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
    >>> shown = html_table("kernel", [("engine", "a < b")])
    >>> shown.startswith("<b>kernel</b><table><tr><td"), "a &lt; b</td></tr></table>" in shown
    (True, True)
    """
    left = 'style="text-align: left"'  # notebooks align cells for numbers
    head = "".join(f"<th {left}>{_escaped(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td {left}>{_escaped(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<b>{_escaped(title)}</b><table>" + f"<tr>{head}</tr>" * bool(heads) + f"{body}</table>"


def html_tabs(texts: Mapping[str, str]) -> str:
    """Texts of which the one is shown whose tab is chosen, as HTML.

    Examples
    --------
    >>> shown = html_tabs({"source": "a < b", "ll": "define void @f()"})
    >>> shown.count('<input type="radio"'), "<label" in shown, ">a &lt; b</pre>" in shown
    (2, True, True)
    """
    import secrets

    group = f"metalloid-{secrets.token_hex(4)}"  # other objects on the page have tabs, too
    style = f"#{group} > input, #{group} > pre {{ display: none }}"
    tabs = ""
    for number, name in enumerate(texts):
        chosen = " checked" if number == 0 else ""
        tab = f"{group}-{number}"
        style += (
            f" #{tab}:checked ~ pre:nth-of-type({number + 1}) {{ display: block }}"
            f" #{tab}:checked + label {{ font-weight: bold; text-decoration: underline }}"
        )
        tabs += (
            f'<input type="radio" name="{group}" id="{tab}"{chosen}>'
            f'<label for="{tab}" style="margin-right: 1em">{_escaped(name)}</label>'
        )
    pages = "".join(_listing(text) for text in texts.values())
    return f'<style>{style}</style><div id="{group}">{tabs}{pages}</div>'


def html_section(title: str, text: str) -> str:
    """A text that opens when its title is clicked, as HTML.

    Examples
    --------
    >>> shown = html_section("source", "a < b")
    >>> shown.startswith("<details><summary>source</summary><pre"), "a &lt; b" in shown
    (True, True)
    """
    return f"<details><summary>{_escaped(title)}</summary>{_listing(text)}</details>"


def _listing(text: str) -> str:
    """A text that scrolls if it is long or wide."""
    style = "font-family: monospace; max-height: 40em; overflow: auto"
    return f'<pre style="{style}">{_escaped(text)}</pre>'
