"""Containers of arrays that a function reads or writes, besides its arguments and results."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from metalloid.arrays.array import Array
from metalloid.arrays.ir.node import ABSTRACT, Node
from metalloid.transforms.tree import TreeDef, flatten


def check(name: str, tree: Any) -> None:
    """Raise TypeError for what cannot hold arrays that are replaced."""
    if tree is not None and not isinstance(tree, list | tuple | dict):
        raise TypeError(
            f"[compile] {name} must be a list, tuple or dictionary of arrays, got "
            f"{type(tree).__name__}."
        )


@contextmanager
def replaced(tree: Any, values: Iterator[Any]) -> Iterator[None]:
    """Replace the leaves of a tree, in its containers, for a while.

    Afterwards the leaves are those of before, but for arrays with values that something has stored
    meanwhile: arrays of the trace have none.
    """
    leaves, structure = flatten(tree)
    assign(tree, structure, values)
    try:
        yield
    finally:
        _restore(tree, structure.unflatten(iter(leaves)))


def assign(tree: Any, structure: TreeDef, leaves: Iterator[Any]) -> None:
    """Store leaves in the containers of a tree, which get a structure."""
    keys = structure.keys or range(len(structure.children))
    if isinstance(tree, list) and len(tree) != len(structure.children):
        tree[:] = [None] * len(structure.children)
    for key, child in zip(keys, structure.children, strict=True):
        own = _item(tree, key)
        if child.type is not None and type(own) is child.type and own is not None:
            assign(own, child, leaves)
        else:
            _store(tree, key, child.unflatten(leaves))


def copy_writes(tree: Any, copy: Any, tracers: Collection[Node]) -> None:
    """Repeat in a tree what a function has written to a copy of it, whose leaves were tracers."""
    if type(tree) is not type(copy) or not isinstance(copy, list | tuple | dict):
        return
    if isinstance(copy, list) and len(tree) != len(copy):
        tree[:] = copy
        return
    for key, value in copy.items() if isinstance(copy, dict) else enumerate(copy):
        own = _item(tree, key) if not isinstance(tree, dict) or key in tree else None
        if isinstance(value, Array):
            if value._node not in tracers:
                _store(tree, key, value)
        elif isinstance(value, list | tuple | dict) and type(own) is type(value):
            copy_writes(own, value, tracers)
        elif own is not value:
            _store(tree, key, value)


def _restore(tree: Any, before: Any) -> None:
    """Store the arrays of a tree's copy where it holds arrays without values; remove new ones."""
    structure = flatten(tree, lambda item: item is not tree)[1]
    known = flatten(before, lambda item: item is not before)[1]
    keys = known.keys or range(len(known.children))
    for key in structure.keys or range(len(structure.children)):
        item = _item(tree, key)
        if isinstance(item, Array) and item._node.flags & ABSTRACT:
            if key in keys:
                _store(tree, key, _item(before, key))
            elif isinstance(tree, dict):
                del tree[key]
        elif key in keys and flatten(item)[1].type is not None:
            _restore(item, _item(before, key))


def _item(tree: Any, key: Any) -> Any:
    if isinstance(tree, dict):
        return tree.get(key)
    return getattr(tree, key) if dataclasses.is_dataclass(tree) else tree[key]


def _store(tree: Any, key: Any, value: Any) -> None:
    if _item(tree, key) is value:
        return
    if dataclasses.is_dataclass(tree):
        object.__setattr__(tree, key, value)
    elif isinstance(tree, tuple):
        raise TypeError("[compile] a captured tuple holds arrays, which cannot be replaced.")
    else:
        tree[key] = value
