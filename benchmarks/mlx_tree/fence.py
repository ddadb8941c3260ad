"""Fences between the CPU and kernels: a word of memory that one side writes and the other reads."""

from __future__ import annotations

import time

import numpy as np

import metalloid as mtl
from mlx_tree.agreement import Family


def check(library: mtl.Library, name: str, rng: np.random.Generator) -> None:
    words = rng.integers(1, 2**32, 100, np.uint32)
    value = int(words[0]) // 2
    before = words.copy()
    kernel = library.function(name)
    if name == "input_coherent":  # makes the words visible; they stay what they are
        kernel(words, words.size, threads=128, group_size=128)
        np.testing.assert_array_equal(words, before)
    elif name == "fence_update":
        kernel(words, value, threads=1)
        np.testing.assert_array_equal(words, [value, *before[1:]])
    else:
        check_wait(kernel, value)


def check_wait(kernel: mtl.Kernel, value: int) -> None:
    """It ends once the word has reached the value, which the CPU gives it."""
    word = mtl.Buffer(np.array([max(value - 1, 0)], np.uint32), visible=True)
    seen = np.asarray(word)
    event = kernel(word, value, threads=1)
    try:
        time.sleep(0.01)
        assert not event.done, "the kernel does not wait"
    finally:
        seen[0] = value
        event.wait()
    assert seen[0] == value, "the kernel writes what it should wait for"


FAMILIES = (Family("fence", ("fence.metal",), check),)
