"""Trees of lists, tuples and dictionaries, whose leaves are arrays."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import metalloid as mtl
from metalloid.compat.mlx.core.array import array, wrap


def mapped(function: Callable[[Any], Any], tree: Any, as_dict: bool = True) -> Any:
    """The tree with another value for each leaf.

    Parameters
    ----------
    as_dict : bool
        Whether dictionaries of other types, such as modules, become plain ones.
    """
    if isinstance(tree, list):
        items = [mapped(function, item, as_dict) for item in tree]
        return items if type(tree) is list else type(tree)(items)
    if isinstance(tree, tuple):
        items = [mapped(function, item, as_dict) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, dict):
        values = {key: mapped(function, item, as_dict) for key, item in tree.items()}
        if as_dict or type(tree) is dict:
            return values
        result = copy.copy(tree)
        dict.update(result, values)
        return result
    return function(tree)


def unwrapped(tree: Any) -> Any:
    """The tree with arrays of metalloid."""
    return mapped(lambda leaf: leaf._a if isinstance(leaf, array) else leaf, tree)


def wrapped(tree: Any) -> Any:
    """The tree with arrays of MLX."""
    return mapped(lambda leaf: wrap(leaf) if isinstance(leaf, mtl.Array) else leaf, tree)


def leaves_of(tree: Any) -> Iterator[Any]:
    """The leaves of a tree, in order."""
    if isinstance(tree, list | tuple):
        for item in tree:
            yield from leaves_of(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from leaves_of(item)
    else:
        yield tree


def arrays_of(tree: Any) -> list[array]:
    """The arrays of a tree, in order."""
    return [leaf for leaf in leaves_of(tree) if isinstance(leaf, array)]


def with_arrays(tree: Any, arrays: Iterable[array], as_dict: bool = False) -> Any:
    """The tree with other arrays."""
    values = iter(arrays)
    return mapped(lambda leaf: next(values) if isinstance(leaf, array) else leaf, tree, as_dict)


def fill(tree: Any, replace: Callable[[array], array]) -> None:
    """Replace the arrays that the containers of a tree hold."""
    items: Any = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        if isinstance(value, array):
            replacement = replace(value)
            if replacement is not value:
                tree[key] = replacement
        elif isinstance(value, list | tuple | dict):
            fill(value, replace)


def copy_writes(tree: Any, passed: Any, given: set[int]) -> None:
    """Repeat in a tree what a function has written to a copy of it.

    Parameters
    ----------
    given : set of int
        Ids of the arrays that the copy had at first.
    """
    if isinstance(passed, dict):
        pairs: Any = passed.items()
    elif isinstance(passed, list | tuple):
        pairs = enumerate(passed)
    else:
        return
    for key, value in list(pairs):
        is_known = key in tree if isinstance(tree, dict) else key < len(tree)
        if isinstance(value, list | tuple | dict) and is_known:
            copy_writes(tree[key], value, given)
        elif isinstance(value, array) and id(value) not in given:
            if isinstance(tree, list) and not is_known:
                tree.append(value)
            else:
                tree[key] = value


def structure_of(tree: Any, leaf_key: Callable[[Any], Any]) -> Any:
    """A hashable description of a tree, with `leaf_key` of each leaf that is no array."""
    if isinstance(tree, array):
        return array
    if isinstance(tree, list | tuple):
        return (type(tree), *(structure_of(item, leaf_key) for item in tree))
    if isinstance(tree, dict):
        return (dict, *((key, structure_of(item, leaf_key)) for key, item in tree.items()))
    return leaf_key(tree)
