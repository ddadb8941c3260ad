"""The base of descriptors: settings with a getter and a setter each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T", bound="Descriptor")
Check = Callable[[Any], Any]


class Descriptor:
    """Settings that something is made of; each has a default."""

    __slots__ = ("_settings",)

    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}

    @classmethod
    def alloc(cls: type[_T]) -> _T:
        """A new one, before `init`."""
        return cls()

    new = alloc

    def init(self: _T) -> _T:
        """Itself."""
        return self


def setting(name: str, default: Any, check: Check) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The methods ``name()`` and ``setName_(value)`` of a setting."""

    def get(self: Any) -> Any:
        return self._settings.get(name, default)

    def set_(self: Any, value: Any) -> None:
        self._settings[name] = check(value)

    get.__doc__, set_.__doc__ = f"The setting `{name}`.", f"Choose `{name}`."
    return get, set_
