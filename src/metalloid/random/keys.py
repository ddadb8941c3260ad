"""Keys of random numbers, created and split as in JAX."""

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
from metalloid.arrays.ir.host_arrays import from_numpy
from metalloid.arrays.ir.layout import Ints
from metalloid.arrays.ir.node import Node, apply, broadcast, cast, iota, reshape
from metalloid.arrays.ir.operands import to_node
from metalloid.arrays.ir.ops import NO_DERIVATIVE, Op
from metalloid.arrays.ir.views import as_shape, full_slices, sliced
from metalloid.kernels.strides import broadcast_shape
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device
from metalloid.transforms.state import State

_WORD = 2**32 - 1
KEY_WORD = Op("key_word", "numpy::key_word({0}, {1}, {2}, {3})", "u", "A word of a new key", 4,
              cost=50, file="random", tangents=NO_DERIVATIVE)  # fmt: skip


def key(seed: int, *, device: str | Device | None = None) -> Array:
    """Create a key: the two 32-bit words of the seed.

    Parameters
    ----------
    seed : int
        At least -2**63 and less than 2**64.

    Returns
    -------
    Array
        uint32 of shape (2,).

    Raises
    ------
    OverflowError
        If the seed is out of range.

    Examples
    --------
    >>> import metalloid as mtl
    >>> mtl.random.key(42)
    array([ 0, 42], dtype=uint32)
    """
    return _key_of(words_of(seed), get_device(device))


def words_of(seed: int) -> tuple[int, int]:
    """Return the two words of a seed."""
    number = operator.index(seed)
    if not -(2**63) <= number < 2**64:
        raise OverflowError(f"[random.key] a seed has 64 bits, got {number}.")
    return number >> 32 & _WORD, number & _WORD


def _key_of(words: tuple[int, int], device: Device) -> Array:
    return Array(from_numpy(np.array(words, np.uint32), device))


def split(key: Array, num: int | Sequence[int] = 2) -> Array:
    """Derive new keys, independent of each other and of `key`, which must not be used again.

    Parameters
    ----------
    key : Array
        One key, or several of shape (..., 2).
    num : int or sequence of int
        Number of new keys per key.

    Returns
    -------
    Array
        uint32 of shape ``(..., num, 2)``, or ``(..., *num, 2)``; equal to the keys of JAX.

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
    """Derive a key from a key and an integer, such as the number of a step or a process.

    Parameters
    ----------
    key : Array
        One key, or several of shape (..., 2).
    data : int or Array
        Integers that broadcast with the keys. ``fold_in(key, k)`` equals ``split(key, n)[k]``.

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
            f"[random.fold_in] expected integers, got {index.dtype} of shape {index.shape}."
        )
    shape = broadcast_shape("random.fold_in", node.shape[:-1], index.shape)
    first, second = (broadcast(word, shape) for word in _words(node, ()))
    return _new_keys((first, second), cast(index, int64))


def _new_keys(words: tuple[Node, Node], index: Node) -> Array:
    """Derive keys by index from the words of a key."""
    shape = (*words[0].shape, 2)
    index = broadcast(index, words[0].shape)
    args = (broadcast(reshape(node, (*node.shape, 1)), shape) for node in (*words, index))
    return Array(apply(KEY_WORD, uint32, *args, iota(shape, len(shape) - 1, index.device)))


def broadcast_words(where: str, key: Array, shape: Ints) -> tuple[Node, Node]:
    """Broadcast the words of a key to a shape; axes of several keys come first.

    Raises
    ------
    TypeError, ValueError
        If it is not a key.
    """
    return _words(_checked(where, key), shape)


def _words(keys: Node, shape: Ints) -> tuple[Node, Node]:
    batch = keys.shape[:-1]
    first, second = (
        reshape(sliced(keys, [*full_slices(batch), (k, 1, 1)]), (*batch, *(1 for _ in shape)))
        for k in range(2)
    )
    return broadcast(first, (*batch, *shape)), broadcast(second, (*batch, *shape))


def _checked(where: str, key: Array) -> Node:
    node = to_node(key, where)
    if node.dtype != uint32:
        raise TypeError(f"[{where}] keys must be uint32, got {node.dtype}. See `random.key`.")
    if node.shape[-1:] != (2,):
        raise ValueError(f"[{where}] keys must have shape (2,) or (..., 2), got {node.shape}.")
    return node


# -- keys of a sequence

_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32 on Python integers; kernels use ``random.metal``.

    Examples
    --------
    >>> [hex(word) for word in threefry((0, 0), (0, 0))]
    ['0x6b200159', '0x99ba4efe']
    """
    keys = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x, y = (counter[0] + key[0]) & _WORD, (counter[1] + key[1]) & _WORD
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            x = (x + y) & _WORD
            y = ((y << turn | y >> (32 - turn)) & _WORD) ^ x
        x = (x + keys[(group + 1) % 3]) & _WORD
        y = (y + keys[(group + 2) % 3] + group + 1) & _WORD
    return x, y


class KeySequence:
    """Sequence of keys, equal to those that `split` derives from the key of a seed.

    Attributes
    ----------
    root : tuple of int
        Words of the seed.
    taken : int
        Number of keys used so far.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._lock = threading.Lock()
        self.start(seed)

    def start(self, seed: int | None) -> None:
        """Restart the sequence, from OS entropy if `seed` is None."""
        words = words_of(secrets.randbits(64) if seed is None else seed)
        with self._lock:
            self.root, self.taken = words, 0

    def next_words(self) -> tuple[int, int]:
        """Return the words of the next key."""
        with self._lock:
            number = self.taken
            self.taken += 1
        return threefry(self.root, words_of(number))

    def take(self, count: int) -> tuple[list[Array], int]:
        """Return the next keys, and the number of keys that were used with them."""
        with self._lock:
            self.taken += count
            root, taken = self.root, self.taken
        words = [threefry(root, words_of(k)) for k in range(taken - count, taken)]
        return [_key_of(pair, get_device()) for pair in words], taken

    def give_back(self, taken: int, count: int) -> None:
        """Let keys that have not been used be the next ones, unless others were taken since."""
        with self._lock:
            self.taken -= count * (self.taken == taken)

    def next(self) -> Array:
        """Return the next key."""
        return _key_of(self.next_words(), get_device())


class _DefaultState(State):
    """The default sequence as an array, for compiled functions: its root, and the keys used."""

    def __init__(self, sequence: KeySequence) -> None:
        super().__init__()
        self._sequence = sequence
        self._written: Array | None = None

    def read(self) -> Array:
        """See `State.read`."""
        written = self._written
        if written is not None:
            return written
        root, taken = self._sequence.root, self._sequence.taken
        return Array(from_numpy(np.array([*root, taken], np.uint32), get_device()))

    def write(self, value: Array) -> None:
        """See `State.write`."""
        self._written = value

    def settle(self) -> None:
        """Bring the sequence up to date with what compiled functions have used."""
        written, self._written = self._written, None
        if written is not None:
            high, low, taken = written.tolist()
            self._sequence.root, self._sequence.taken = (high, low), taken

    def next(self) -> Array:
        """Return the next key: an expression while a function is traced."""
        state = self.traced
        if state is None:
            self.settle()
            return self._sequence.next()
        self.traced = state + _one_more
        return fold_in(state[:2], state[2])


_one_more = np.array([0, 0, 1], np.uint32)
_default_sequence = KeySequence()
_default_state = _DefaultState(_default_sequence)


def next_key() -> Array:
    """Return the next key of the default sequence."""
    return _default_state.next()


def seed(seed: int) -> None:
    """Restart the default sequence of keys, which functions use if they get no key.

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
    _default_state.settle()
    _default_sequence.start(operator.index(seed))
