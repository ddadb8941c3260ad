"""Keys: what random numbers are a function of, beside their place. Made and split as in JAX."""

from __future__ import annotations

import math
import operator
import secrets
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from metalloid.arrays.array import Array
from metalloid.arrays.ir.dtypes import int64, kind_of, uint32
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node, apply, broadcast, cast, iota, reshape
from metalloid.arrays.ir.operands import broadcast_shape, from_numpy, to_node
from metalloid.arrays.ir.ops import Op
from metalloid.arrays.ir.views import as_shape, sliced, whole
from metalloid.runtime.device import Device
from metalloid.runtime.registry import get_device

_WORD = 2**32 - 1
KEY_WORD = Op("key_word", "numpy::key_word({0}, {1}, {2}, {3})", "u", "A word of a new key", 4,
              cost=50, file="random")  # fmt: skip


def key(seed: int, *, device: str | Device | None = None) -> Array:
    """A key: two words of 32 bits, those of the seed.

    Parameters
    ----------
    seed : int
        From -2**63 up to but without 2**64.

    Returns
    -------
    Array
        Of uint32 and shape (2,).

    Raises
    ------
    OverflowError
        If the seed has more bits.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.key(42)
    array([ 0, 42], dtype=uint32)
    """
    return _key_of(words_of(seed), get_device(device))


def words_of(seed: int) -> tuple[int, int]:
    """The two words of a seed."""
    number = operator.index(seed)
    if not -(2**63) <= number < 2**64:
        raise OverflowError(f"[random.key] a seed has 64 bits, got {number}.")
    return number >> 32 & _WORD, number & _WORD


def _key_of(words: tuple[int, int], device: Device) -> Array:
    return Array(from_numpy(np.array(words, np.uint32), device))


def split(key: Array, num: int | Sequence[int] = 2) -> Array:
    """New keys, independent of each other and of the old one, which has been spent.

    Parameters
    ----------
    key : Array
        Or several, of shape (..., 2).
    num : int or sequence of int
        How many of each.

    Returns
    -------
    Array
        Of uint32 and shape (..., num, 2), or (..., *num, 2). They are the keys of JAX.

    Examples
    --------
    >>> import metalloid as mtl
    >>> first, second = mtl.random.split(mtl.random.key(0))
    >>> mtl.random.uniform(shape=3, key=second)
    array([0.00729388, 0.02089125, 0.58142656], dtype=float32)
    """
    node, shape = _checked("random.split", key), as_shape("random.split", num)
    index = reshape(iota((math.prod(shape),), 0, node.device), shape)
    return _new_keys(_words(node, shape), index)


def fold_in(key: Array, data: Any) -> Array:
    """A new key from a key and a number, such as that of a step or of a process.

    Parameters
    ----------
    key : Array
        Or several, of shape (..., 2).
    data : int or Array
        A whole number; ``fold_in(key, k)`` is ``split(key, n)[k]``. Several broadcast with the
        keys and make as many.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.fold_in(mtl.random.key(0), 7)
    array([2716826189,  292468403], dtype=uint32)
    """
    node = _checked("random.fold_in", key)
    index = to_node(data, "random.fold_in", device=node.device)
    if kind_of(index.dtype) not in "iu":
        raise TypeError(
            f"[random.fold_in] expected a whole number, got {index.dtype} of shape {index.shape}."
        )
    shape = broadcast_shape("random.fold_in", node.shape[:-1], index.shape)
    first, second = (broadcast(word, shape) for word in _words(node, ()))
    return _new_keys((first, second), cast(index, int64))


def _new_keys(words: tuple[Node, Node], index: Node) -> Array:
    """Keys for places, from words at every place."""
    shape = (*words[0].shape, 2)
    index = broadcast(index, words[0].shape)
    args = (broadcast(reshape(node, (*node.shape, 1)), shape) for node in (*words, index))
    return Array(apply(KEY_WORD, uint32, *args, iota(shape, len(shape) - 1, index.device)))


def broadcast_words(where: str, key: Array, shape: Ints) -> tuple[Node, Node]:
    """The words of a key at every place of a shape; of several keys, whose axes come in front.

    Raises
    ------
    TypeError, ValueError
        If it is no key.
    """
    return _words(_checked(where, key), shape)


def _words(keys: Node, shape: Ints) -> tuple[Node, Node]:
    batch = keys.shape[:-1]
    first, second = (
        reshape(sliced(keys, [*whole(batch), (k, 1, 1)]), (*batch, *(1 for _ in shape)))
        for k in range(2)
    )
    return broadcast(first, (*batch, *shape)), broadcast(second, (*batch, *shape))


def _checked(where: str, key: Array) -> Node:
    node = to_node(key, where)
    if node.dtype != uint32:
        raise TypeError(f"[{where}] a key is of uint32, got {node.dtype}. See `random.key`.")
    if node.shape[-1:] != (2,):
        raise ValueError(f"[{where}] a key has the shape (2,), several (..., 2), got {node.shape}.")
    return node


# -- keys of a sequence

_ROUNDS = (13, 15, 26, 6), (17, 29, 16, 24)


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32 in whole numbers; kernels have it from ``random.metal``.

    Examples
    --------
    >>> [hex(word) for word in threefry((0, 0), (0, 0))]
    ['0x6b200159', '0x99ba4efe']
    """
    keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (counter[0] + key[0]) & _WORD, (counter[1] + key[1]) & _WORD
    for group in range(5):
        for turn in _ROUNDS[group % 2]:
            x = (x + y) & _WORD
            y = ((y << turn | y >> (32 - turn)) & _WORD) ^ x
        x = (x + keys[(group + 1) % 3]) & _WORD
        y = (y + keys[(group + 2) % 3] + group + 1) & _WORD
    return x, y


class KeySequence:
    """Keys one after the other: those that `split` would make of a seed's key.

    Attributes
    ----------
    root : tuple of int
        Words of the seed.
    taken : int
        How many keys have been taken.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._lock = threading.Lock()
        self.start(seed)

    def start(self, seed: int | None) -> None:
        """Begin anew; without a seed, where nobody can tell."""
        words = words_of(secrets.randbits(64) if seed is None else seed)
        with self._lock:
            self.root, self.taken = words, 0

    def next_words(self) -> tuple[int, int]:
        """The words of the next key."""
        with self._lock:
            number = self.taken
            self.taken += 1
        return threefry(self.root, words_of(number))

    def next(self) -> Array:
        """The next key."""
        return _key_of(self.next_words(), get_device())


_default_sequence = KeySequence()


def next_key() -> Array:
    """The next key of the sequence that functions take theirs from when they are given none."""
    return _default_sequence.next()


def seed(seed: int) -> None:
    """Start the sequence of keys that functions take theirs from when they are given none.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.seed(1)
    >>> a = mtl.random.normal(shape=4)
    >>> mtl.random.seed(1)
    >>> b = mtl.random.normal(shape=4)
    >>> bool((a == b).all())
    True
    """
    _default_sequence.start(operator.index(seed))
