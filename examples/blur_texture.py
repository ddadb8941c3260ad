"""A picture blurred and shrunk with textures and a sampler, checked against NumPy."""

import numpy as np

import metalloid as mtl

SOURCE = """
#include <metal_stdlib>
using namespace metal;

// Halves the size of a picture. Each texel of the result is the mean of nine places around its
// centre, a texel apart: linear filtering turns them into a smooth 4 x 4 blur of the picture.
kernel void shrink(texture2d<float, access::sample> picture [[texture(0)]],
                   texture2d<float, access::write> result [[texture(1)]],
                   sampler linear [[sampler(0)]],
                   uint2 p [[thread_position_in_grid]])
{
    const float2 centre = 2 * float2(p) + 1;
    float4 sum = 0;
    for (int j = -1; j <= 1; ++j)
        for (int i = -1; i <= 1; ++i)
            sum += picture.sample(linear, centre + float2(i, j));
    result.write(sum / 9, p);
}
"""


def picture(size):
    """A disc on a gradient, with four channels of 8 bits."""
    y, x = np.mgrid[:size, :size] / size
    disc = np.hypot(x - 0.5, y - 0.5) < 0.3
    return (255 * np.stack([x, y, disc, np.ones_like(x)], -1)).astype(np.uint8)


def shrunk(image):
    """The same with NumPy: along each axis the texels count 1, 2, 2, 1 sixths."""
    values = np.pad(image / 255, [(1, 1), (1, 1), (0, 0)], mode="edge")
    for axis in (0, 1):
        indices = np.arange(0, image.shape[axis], 2)
        a, b, c, d = (values.take(indices + k, axis) for k in range(4))
        values = (a + 2 * b + 2 * c + d) / 6
    return values


def main(size=512):
    image = picture(size)
    result = np.zeros((size // 2, size // 2, 4), np.uint8)
    sampler = mtl.Sampler(coord="pixel", filter="linear", address="clamp_to_edge")
    event = mtl.library(SOURCE).shrink(image, result, sampler, threads=(size // 2, size // 2))
    error = np.abs(result - 255 * shrunk(image)).max()
    # Rounding to 8 bits, and of the arithmetic before it.
    assert error < 0.501, error
    print(
        f"{size} x {size} texels shrunk in {1e3 * event.seconds:.1f} ms; largest error {error:.3f}"
    )


if __name__ == "__main__":
    main()
