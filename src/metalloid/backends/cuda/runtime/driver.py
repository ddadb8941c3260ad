"""The CUDA driver through NVIDIA's bindings, and its errors as exceptions."""

from __future__ import annotations

import functools
from typing import Any

from metalloid.errors import DeviceUnavailable, LaunchError, OutOfMemory


@functools.cache
def driver() -> Any:
    """The module ``cuda.bindings.driver``, with the driver initialised.

    Raises
    ------
    DeviceUnavailable
        Without the package, the driver or a GPU.
    """
    try:
        from cuda.bindings import driver as bindings
    except ImportError:
        raise DeviceUnavailable(
            "[cuda] the package 'cuda-bindings' is not installed. Run: pip install metalloid[cuda]"
        ) from None
    try:
        status = bindings.cuInit(0)[0]
    except Exception as error:  # each version raises another for a missing library
        raise DeviceUnavailable(f"[cuda] the NVIDIA driver cannot be loaded: {error}") from None
    if status != bindings.CUresult.CUDA_SUCCESS:
        raise DeviceUnavailable(f"[cuda] the NVIDIA driver finds no GPU ({status.name}).")
    return bindings


def check(outcome: tuple[Any, ...], what: str) -> Any:
    """The value that a function of the driver returned; None if it returns none.

    Parameters
    ----------
    outcome : tuple
        What the binding returned: the status, and values.
    what : str
        For the message: ``"copying to the device"``.

    Raises
    ------
    OutOfMemory, LaunchError
    """
    status = outcome[0]
    if status:
        raise error_of(status, what)
    return outcome[1] if len(outcome) > 1 else None


def error_of(status: Any, what: str) -> OutOfMemory | LaunchError:
    """The exception for a status other than success."""
    text = f"[cuda] {what} failed: {describe(status)}."
    if status == driver().CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        return OutOfMemory(text)
    return LaunchError(text)


def describe(status: Any) -> str:
    """The driver's description of a status, with its name."""
    name = getattr(status, "name", str(status))
    error, text = driver().cuGetErrorString(status)
    return name if error or not text else f"{text.decode()} ({name})"


@functools.cache
def version() -> int:
    """The CUDA version of the driver: 13000 is 13.0."""
    return int(check(driver().cuDriverGetVersion(), "asking for the version"))
