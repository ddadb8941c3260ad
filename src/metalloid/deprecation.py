"""Public names that are to go, by the policy of docs/support.md."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def deprecated(
    *, since: str, removed_in: str, instead: str
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a public function that a later version removes.

    Parameters
    ----------
    since, removed_in : str
        Versions: the first that warns, and the first without the function, at least two minor
        versions later.
    instead : str
        What to use.

    Raises
    ------
    ValueError
        If the versions are closer than the policy allows.

    Examples
    --------
    >>> @deprecated(since="0.3", removed_in="0.5", instead="new")
    ... def old(x):
    ...     return x
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = old(1)
    >>> print(caught[0].message)
    [old] is deprecated since metalloid 0.3 and goes in 0.5. Use new.
    """
    first, last = (tuple(map(int, text.split("."))) for text in (since, removed_in))
    if last[0] == first[0] and last[1] < first[1] + 2:
        raise ValueError(
            f"[deprecated] {removed_in} is less than two minor versions after {since}; see "
            "docs/support.md"
        )

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        text = (
            f"[{function.__name__}] is deprecated since metalloid {since} and goes in "
            f"{removed_in}. Use {instead}."
        )

        @functools.wraps(function)
        def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        wrapper.__doc__ = f"{function.__doc__ or ''}\n\n.. deprecated:: {since}\n   {text}\n"
        return wrapper

    return decorate
