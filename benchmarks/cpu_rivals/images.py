"""Kernels over textures: a bilinear resize and a blur of pictures of 8 bits, and OpenCV's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import metalloid as mtl
from metalloid.kernels.library import Library

SOURCE = """
#include <metal_stdlib>
using namespace metal;

kernel void resize(texture2d<float> picture, texture2d<float, access::write> result,
                   uint2 p [[thread_position_in_grid]])
{
    constexpr sampler linear(filter::linear);
    const float2 size(result.get_width(), result.get_height());
    result.write(picture.sample(linear, (float2(p) + 0.5f) / size), p);
}

kernel void blur(texture2d<float, access::read> picture, texture2d<float, access::write> result,
                 uint2 p [[thread_position_in_grid]])
{
    const int2 last = int2(picture.get_width(), picture.get_height()) - 1;
    const float weights[5] = {1 / 16.0f, 4 / 16.0f, 6 / 16.0f, 4 / 16.0f, 1 / 16.0f};
    float4 sum = 0;
    for (int j = -2; j <= 2; ++j) {
        for (int i = -2; i <= 2; ++i) {
            const uint2 at = uint2(clamp(int2(p) + int2(i, j), 0, last));
            sum += weights[j + 2] * weights[i + 2] * picture.read(at);
        }
    }
    result.write(sum, p);
}
"""
_WEIGHTS = np.array([1, 4, 6, 4, 1], np.float32) / 16
#: Codes that roundings may make of a difference: OpenCV computes in integers.
MAX_DIFFERENCE = 1.01

Action = Callable[[], object]


@dataclass(frozen=True)
class Picture:
    """One kernel on one picture.

    Attributes
    ----------
    name : str
    kernel : str
    source, result : ndarray
        (height, width, 4) of uint8.
    """

    name: str
    kernel: str
    source: np.ndarray
    result: np.ndarray

    def launcher(self, lib: Library) -> Action:
        """A function that runs the kernel."""
        kernel, threads = lib[self.kernel], self.result.shape[1::-1]
        return lambda: kernel(self.source, self.result, threads=threads)

    def expected(self) -> np.ndarray:
        """The same in NumPy."""
        if self.kernel == "resize":
            values = self.source.astype(np.float32)
            return _resized(_resized(values, 0, self.result.shape[0]), 1, self.result.shape[1])
        height, width = self.source.shape[:2]
        padded = np.pad(self.source.astype(np.float32), [(2, 2), (2, 2), (0, 0)], mode="edge")
        rows = sum(w * padded[k : k + height] for k, w in enumerate(_WEIGHTS))
        return sum(w * rows[:, k : k + width] for k, w in enumerate(_WEIGHTS))


def _resized(values: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Linear interpolation along an axis, whose ends go on."""
    length = values.shape[axis]
    at = np.clip((np.arange(size) + 0.5) * length / size - 0.5, 0, length - 1)
    low = np.minimum(at.astype(int), max(length - 2, 0))
    weight = np.expand_dims((at - low).astype(np.float32), tuple({0, 1, 2} - {axis}))
    high = values.take(np.minimum(low + 1, length - 1), axis)
    return values.take(low, axis) * (1 - weight) + high * weight


def pictures(tiny: bool) -> Iterator[Picture]:
    """Resizes to measure: from and to 4K, and a blur of 5 x 5."""
    rng = np.random.default_rng(0)
    small, large = ((24, 40), (48, 80)) if tiny else ((1080, 1920), (2160, 3840))

    def random(shape: tuple[int, int]) -> np.ndarray:
        return rng.integers(0, 256, (*shape, 4), np.uint8)

    def empty(shape: tuple[int, int]) -> np.ndarray:
        return np.zeros((*shape, 4), np.uint8)

    yield Picture("resize to 4K", "resize", random(small), empty(large))
    yield Picture("resize from 4K", "resize", random(large), empty(small))
    yield Picture("blur 5 x 5", "blur", random(small), empty(small))


def library(math_mode: str) -> Library:
    """The kernels, of the engine that is set."""
    return mtl.library(SOURCE, math_mode=math_mode)


def of_opencv(picture: Picture) -> Action | None:
    """The same by OpenCV on one core; None if it is not installed."""
    try:
        import cv2
    except ImportError:
        return None
    cv2.setNumThreads(1)
    source, result = picture.source, picture.result
    if picture.kernel == "resize":
        size = result.shape[1::-1]
        return lambda: cv2.resize(source, size, result, interpolation=cv2.INTER_LINEAR)
    return lambda: cv2.sepFilter2D(
        source, -1, _WEIGHTS, _WEIGHTS, result, borderType=cv2.BORDER_REPLICATE
    )
