"""`install`: ``import mlx.core`` finds the ``mlx.core`` of this package."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import types

_CORE = "metalloid.compat.mlx.core"
_SUBMODULES = ("cuda", "distributed", "fast", "fft", "linalg", "metal", "random")


def install(has_metal: bool = False) -> None:
    """Let ``import mlx.core`` find metalloid's; call it before ``mlx`` is imported.

    ``mlx.nn``, ``mlx.optimizers`` and ``mlx.utils`` are then loaded from the installed ``mlx``
    package, whose native library is not.

    Parameters
    ----------
    has_metal : bool, default False
        Report a GPU with Metal on every device: ``mx.metal.is_available()`` is true and the
        default device ``mx.gpu``. Programs that have kernels in Metal and a fallback without them
        then run the kernels.

    Raises
    ------
    RuntimeError
        If MLX's own ``mlx.core`` has been imported: its arrays would mix with metalloid's.

    Examples
    --------
    >>> import metalloid.compat.mlx as compat
    >>> compat.install()
    >>> import mlx.core as mx
    >>> mx.array([1, 2]) + 1
    array([2, 3], dtype=int32)
    >>> compat.uninstall()
    """
    current = sys.modules.get("mlx.core")
    core = importlib.import_module(_CORE)
    if current is not None and current is not core:
        raise RuntimeError(
            "[install] mlx.core has already been imported from the package 'mlx'. Call "
            "metalloid.compat.mlx.install() before the program imports it, or run it by "
            "'python -m metalloid.compat.mlx program.py'."
        )
    core.devices.reports_metal[0] = has_metal
    if current is core:
        return
    package = _package()
    sys.modules["mlx.core"] = core
    package.core = core  # type: ignore[attr-defined]
    for name in _SUBMODULES:
        sys.modules[f"mlx.core.{name}"] = importlib.import_module(f"{_CORE}.{name}")


def _package() -> types.ModuleType:
    """The package ``mlx``, or an empty one if it is not installed."""
    if importlib.util.find_spec("mlx") is not None:
        return importlib.import_module("mlx")
    package = types.ModuleType("mlx")
    package.__path__ = pkgutil.extend_path([], "mlx")
    sys.modules["mlx"] = package
    return package


def uninstall() -> None:
    """Undo `install`: later imports find the package ``mlx``, if it is installed."""
    if sys.modules.get("mlx.core") is not sys.modules.get(_CORE):
        return
    for name in list(sys.modules):
        if name == "mlx" or name.startswith("mlx."):
            del sys.modules[name]
    importlib.import_module(_CORE).devices.reports_metal[0] = False
