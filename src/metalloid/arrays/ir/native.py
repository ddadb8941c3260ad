"""The functions of ``arrays/native/*.c``, which do in C what calls of small kernels spend most on.

They read and make objects of `Memory`, `Node` and `Array` by the offsets of their slots. Where they
are not available, Python's code does the same.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from metalloid.compiler.toolchain import native_build
from metalloid.runtime.launch.launches import NATIVE_BINDERS
from metalloid.runtime.memory.slot_offsets import offsets_of

_SOURCES = Path(__file__).parents[1] / "native"
#: Classes and their slots, in the order of the enumerations of layouts.h.
_SLOTS = {
    "Memory": ("_lease", "_address", "bound", "device", "sharing"),
    "Node": (
        "args", "data", "device", "dtype", "flags", "inlined", "kind", "memory", "shape",
        "topological_id",
    ),
    "Array": ("_node",),
}  # fmt: skip
_classes: dict[str, Any] = {}
_users: list[Callable[[Any], None]] = []
#: The library, once it is loaded.
_loaded: list[Any] = []
T = TypeVar("T")
_lock = threading.Lock()


def has_native_slots(cls: type[T]) -> type[T]:
    """Class decorator: native functions use the slots of the class."""
    _classes[cls.__name__] = cls
    return cls


def has_slots_of_arrays(cls: type[T]) -> type[T]:
    """Class decorator: native functions take and return arrays of this subclass of `Array`."""

    def define(functions: Any) -> None:
        functions.mtl_define_array_subclass(ctypes.py_object(cls))
        if binder := NATIVE_BINDERS.get(_classes["Array"]):
            NATIVE_BINDERS[cls] = binder

    when_loaded(define)
    return cls


@functools.cache
def _load() -> Any:
    offsets = {name: offsets_of(_classes[name], slots) for name, slots in _SLOTS.items()}
    if None in offsets.values():
        return None
    library = native_build.load_python_library(_SOURCES, "arrays")
    if library is None:  # arrays on a Mac's GPU do without a compiler
        return None
    for k, (name, own) in enumerate(offsets.items()):
        library.mtl_define_class(k, ctypes.py_object(_classes[name]), own, len(_SLOTS[name]))
    for name in (
        "mtl_copied_leaf", "mtl_elementwise", "mtl_evaluation", "mtl_fresh_array", "mtl_host_array",
        "mtl_known_call", "mtl_new_pool", "mtl_new_nodes", "mtl_new_plan", "mtl_program_call",
        "mtl_views",
    ):  # fmt: skip
        getattr(library, name).restype = ctypes.py_object
    library.mtl_prepare_bind_array(ctypes.py_object(_classes["Node"].leaf_kind))
    binder = ctypes.cast(library.mtl_bind_array, ctypes.c_void_p).value
    if binder is not None:
        NATIVE_BINDERS[_classes["Array"]] = binder
    for use in _users:
        use(library)
    _loaded.append(library)
    return library


def when_loaded(use: Callable[[Any], None]) -> None:
    """Pass the library to a function when it is loaded, which is not when a module is imported."""
    with _lock:
        _users.append(use)
        if _loaded:
            use(_loaded[0])


def library() -> Any:
    """The library, compiled once per machine; None where it is not available.

    The modules of its classes are imported before: a pool that is made without the library keeps
    its leases in Python.
    """
    with _lock:
        assert len(_classes) == len(_SLOTS), "import metalloid.arrays.array first"
        return _load()


def elementwise(operation: tuple[Any, dict[Any, Any]], *operands: Any) -> Any:
    """The array of `operands.unary` or `binary`; None for operands that need these functions.

    `operands` replaces it by that of native/elementwise.c.

    Parameters
    ----------
    operation : tuple
        From `operands.native_operation`.
    """
    return None


def selected(array: Any, key: Any) -> Any:
    """The array of a basic slice, as `indexing.selected`; None if that function has to make it.

    `node` replaces it by that of native/views.c.
    """
    return None


def moved(node: Any, view_op: Any) -> Any:
    """A view, as `node.move`; None if that function has to make it.

    `node` replaces it by that of native/views.c.
    """
    return None


def new_node(*values: Any) -> Any:
    """The node of an expression, faster than `Node`; None if the class has to make it.

    `node` replaces it by that of native/new_node.c.
    """
    return None


def known_call(calls: tuple[Any, ...], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The results of the call that is like one of the known ones; None if none is.

    `node` replaces it by that of native/known_call.c.
    """
    return None


def copied_leaf(recipe: tuple[Any, ...], array: Any) -> Any:
    """A leaf with a copy of a NumPy array, as `from_numpy`; None if that function has to make it.

    `node` replaces it by that of native/fresh_array.c.
    """
    return None
