"""Random bits: Threefry-2x32 with 20 rounds, as MLX lays its blocks out."""

from __future__ import annotations

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family, ceildiv, element_strides
from mlx_tree.elementwise import block_dims

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key, counter):
    """The cipher of Salmon et al. (2011) on arrays of pairs of 32-bit words."""
    keys = [key[0], key[1], np.uint32(0x1BD11BDA) ^ key[0] ^ key[1]]
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for block in range(5):
        for r in _ROTATIONS[block % 2]:
            x = x + y
            y = ((y << np.uint32(r)) | (y >> np.uint32(32 - r))) ^ x
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + np.uint32(block + 1)
    return x, y


def expected(key, size):
    """`size` bytes for one key: first words of all blocks, then the second ones.

    Block i encrypts the pair (i, i + blocks); the last of an odd number gives one word only.
    """
    words = ceildiv(size, 4)
    blocks = ceildiv(words, 2)
    first = np.arange(blocks, dtype=np.uint32)
    second = first + np.uint32(blocks)
    if words % 2:
        second[-1] = 0
    x, y = threefry(key, (first, second))
    return np.concatenate([x, y])[:words].view(np.uint8)[:size]


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    kernel = library.function(name)
    # What MLX gives a key to fill: a single word is the only size below four bytes.
    for count, size in ((1, 4), (3, 28), (5, 1000), (2, 4 * 33), (4, 30)):
        keys = rng.integers(0, 2**32, (count, 2), dtype=np.uint32)
        blocks = ceildiv(ceildiv(size, 4), 2)
        grid = (count, blocks)
        out = np.empty((count, size), np.int8)
        given, more = keys, ()
        if name == "rbits":
            given = np.zeros((2, 2 * count), np.uint32)  # transposed and with gaps
            view = given.T[::2]
            view[...] = keys
            more = (2, np.array(view.shape, np.int32), element_strides(view))
        odd = bool(ceildiv(size, 4) % 2)
        kernel(given, out, odd, size, *more, threads=grid, group_size=block_dims((*grid, 1)))
        np.testing.assert_array_equal(out.view(np.uint8), [expected(key, size) for key in keys])


FAMILIES = (Family("random", ("random.metal",), check),)
