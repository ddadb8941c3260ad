"""Histogram equalisation: a foggy landscape before and after, with both histograms."""

import sys
from pathlib import Path

import contours
import numpy as np
from PIL import Image

import metalloid as mtl


def histogram(grey):
    """Count the pixels of each value."""
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    counts = np.zeros(256, np.uint32)
    lib.equalise_count(grey, counts, grey.size, threads=256 * 16, group_size=256)
    return counts


def equalised(grey):
    """The picture with values that are spread evenly."""
    lib = mtl.library(path=Path(__file__).with_suffix(".metal"))
    sums = np.zeros(256, np.uint32)
    lib.equalise_scan(histogram(grey), sums, threads=256, group_size=256)
    result = np.zeros_like(grey)
    lib.equalise_map(grey, result, sums, grey.size, threads=grey.size)
    return result


def chart(counts, shape):
    """A picture of a histogram: light bars on black."""
    rows, columns = shape
    heights = counts[np.arange(columns) * 256 // columns] / np.percentile(counts, 99.5) * rows
    return np.where(np.arange(rows)[::-1, None] < heights, np.uint8(200), np.uint8(25))


def picture(size=512):
    terrain = contours.picture(size // 2)[..., :3].mean(-1)
    foggy = (105 + 0.22 * terrain).astype(np.uint8)
    shape = (size // 8, size // 2)
    panels = [
        np.vstack([grey, chart(histogram(grey), shape)]) for grey in (foggy, equalised(foggy))
    ]
    return np.dstack([np.hstack(panels)] * 3)


if __name__ == "__main__":
    file = sys.argv[1] if len(sys.argv) > 1 else "equalise.png"
    Image.fromarray(picture()).save(file)
    print(f"wrote {file}")
