"""Trees: arguments and results that are nested lists, tuples, dictionaries and dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from metalloid.arrays.array import Array


class TreeDef(NamedTuple):
    """The structure of a tree; hashable, if its constants are.

    Attributes
    ----------
    type : type or None
        Of the container; None for a leaf.
    keys : tuple
        Keys of a dictionary, or names of the fields of a dataclass.
    children : tuple of TreeDef
    """

    type: type | None
    keys: tuple[Any, ...] = ()
    children: tuple[TreeDef, ...] = ()

    def unflatten(self, leaves: Iterator[Any]) -> Any:
        """The tree with these leaves."""
        if self.type is None:
            return next(leaves)
        items = [child.unflatten(leaves) for child in self.children]
        if self.type is type(None):
            return None
        if dataclasses.is_dataclass(self.type):
            return _dataclass(self.type, dict(zip(self.keys, items, strict=True)))
        if issubclass(self.type, dict):
            return self.type(zip(self.keys, items, strict=True))
        if hasattr(self.type, "_fields"):  # a named tuple
            return self.type(*items)
        return self.type(items)  # type: ignore[call-arg]


LEAF = TreeDef(None)
#: Types that need no look whether they are containers.
_COMMON_LEAVES = frozenset((Array, bool, int, float, complex, str))


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """Leaves of a tree, in order, and its structure.

    Parameters
    ----------
    is_leaf : callable, optional
        Whether a container counts as a leaf.
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeDef:
    kind = type(tree)
    if kind in _COMMON_LEAVES or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    if tree is None:
        return TreeDef(kind)
    keys: tuple[Any, ...] = ()
    if isinstance(tree, list | tuple):
        items: Any = tree
    elif isinstance(tree, dict):
        keys, items = tuple(tree), tree.values()
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        keys = tuple(field.name for field in dataclasses.fields(tree))
        items = [getattr(tree, name) for name in keys]
    else:
        leaves.append(tree)
        return LEAF
    return TreeDef(kind, keys, tuple([_flatten(item, leaves, is_leaf) for item in items]))


def _dataclass(kind: type, values: dict[str, Any]) -> Any:
    """An instance with these fields; `__init__` may take other arguments."""
    instance: Any = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(instance, name, value)
    return instance


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply a function to the leaves of trees of one structure."""
    leaves, structure = flatten(tree)
    rows = [leaves, *(flatten(other)[0] for other in others)]
    return structure.unflatten(iter([function(*row) for row in zip(*rows, strict=True)]))
