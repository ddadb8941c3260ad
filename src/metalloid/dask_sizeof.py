"""The entry point by which Dask finds this package, in every process that imports it."""

from __future__ import annotations

from typing import Any


def register_sizeof(sizeof: Any) -> None:
    """Register arrays when Dask first asks for the size of one.

    Parameters
    ----------
    sizeof : dask.utils.Dispatch
    """

    @sizeof.register_lazy("metalloid")  # type: ignore[untyped-decorator]
    def register() -> None:
        import metalloid.dask  # noqa: F401
