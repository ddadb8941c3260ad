"""A plan as a drawing: steps, and the values that they read and write, from left to right."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

_CHARACTER, _LINE, _GAP_X, _GAP_Y, _MARGIN = 7.3, 17, 46, 18, 12


class DrawnStep(NamedTuple):
    """A step of a plan.

    Attributes
    ----------
    lines : tuple of str
        What its box says.
    reads, writes : tuple of int
        Numbers of values.
    """

    lines: tuple[str, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]


class _Box(NamedTuple):
    lines: tuple[str, ...]
    is_step: bool
    column: int

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * _CHARACTER + 2 * _MARGIN

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + _MARGIN


def draw(steps: Sequence[DrawnStep], values: Sequence[str]) -> str:
    """The drawing, as SVG.

    Parameters
    ----------
    values : sequence of str
        What the box of each value says.

    Examples
    --------
    >>> svg = draw([DrawnStep(("exp", "2 threads"), (0,), (1,))], ["float32[2]", "float32[2]"])
    >>> svg.startswith("<svg"), svg.count("<rect"), svg.count("<path")
    (True, 3, 2)
    """
    boxes, edges, columns = [], [], dict[int, int]()  # the column of each value
    for number, step in enumerate(steps):
        column = max((columns.setdefault(value, 0) for value in step.reads), default=-1) + 1
        boxes.append((("step", number), _Box(step.lines, True, column)))
        columns.update(dict.fromkeys(step.writes, column + 1))
        edges += [(("value", value), ("step", number)) for value in dict.fromkeys(step.reads)]
        edges += [(("step", number), ("value", value)) for value in step.writes]
    boxes += [(("value", k), _Box((values[k],), False, at)) for k, at in sorted(columns.items())]
    rows: list[list[tuple[tuple[str, int], _Box]]] = [
        [each for each in boxes if each[1].column == column]
        for column in range(max((box.column for _, box in boxes), default=-1) + 1)
    ]
    heights = [sum(box.height + _GAP_Y for _, box in row) for row in rows]
    positions, x = {}, float(_MARGIN)
    for row, height in zip(rows, heights, strict=True):
        y = _MARGIN + (max(heights) - height) / 2
        width = max((box.width for _, box in row), default=0.0)
        for key, box in row:
            positions[key] = x + (width - box.width) / 2, y, box
            y += box.height + _GAP_Y
        x += width + _GAP_X
    lines = [_edge(positions[start], positions[end]) for start, end in edges]
    drawn = "".join([*lines, *(_box(*each) for each in positions.values())])
    width, height = round(x - _GAP_X + _MARGIN), round(max(heights, default=0) + _MARGIN)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return (  # notebooks limit the width of pictures, which would make texts unreadable
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="max-width: none" '
        f'font-family="monospace" font-size="12" fill="none" stroke="currentColor">{drawn}</svg>'
    )


def _edge(start: tuple[float, float, _Box], end: tuple[float, float, _Box]) -> str:
    (x, y, box), (to_x, to_y, to_box) = start, end
    x, y, to_y = x + box.width, y + box.height / 2, to_y + to_box.height / 2
    middle = (x + to_x) / 2
    return f'<path d="M{x:.0f},{y:.0f} C{middle:.0f},{y:.0f} {middle:.0f},{to_y:.0f} {to_x:.0f},{to_y:.0f}"/>'  # noqa: E501


def _box(x: float, y: float, box: _Box) -> str:
    texts = "".join(
        f'<text x="{x + _MARGIN:.0f}" y="{y + _LINE * (k + 1):.0f}" fill="currentColor" '
        f'stroke="none">{html.escape(line)}</text>'
        for k, line in enumerate(box.lines)
    )
    look = 'rx="3" stroke-width="2"' if box.is_step else 'rx="12"'
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" '
        f"{look}/>{texts}"
    )
