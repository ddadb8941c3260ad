"""Libraries from bundles."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from metalloid.compiler.frontend.unit import restore_bundled
from metalloid.compiler.toolchain import native_build
from metalloid.errors import ArgumentError, BundleError, DeviceUnavailable
from metalloid.kernels.bundles.container import Container
from metalloid.kernels.library import Library
from metalloid.msl.entry_points import EntryPoint
from metalloid.runtime.devices.device import Device
from metalloid.runtime.devices.registry import get_device, kinds
from metalloid.runtime.launch.program import Program
from metalloid.settings import settings


class BundledLibrary(Library):
    """The kernels of a bundle; made by `load_library`.

    It is a `Library` whose kernels have been compiled: ``kernel.asm`` and other values of function
    constants are not available. It is pickled as the name of the file.
    """

    def __init__(self, path: str | os.PathLike[str], container: Container, device: Device,
                 target: str) -> None:  # fmt: skip
        self.device, self.source = device, container.source
        self._container, self._target = container, target
        self._file = container.index["file"]
        self._unit = restore_bundled(container.index, self._file, self.source)
        self._names: list[str] = container.index["names"]
        self._recipe = (os.path.abspath(path), device.name)
        self._kernels = {}

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the kernels of the bundle."""
        return tuple(self._names)

    def _constant_values(self, constants: Mapping[Any, Any]) -> dict[int, str]:
        if constants:
            raise ArgumentError(
                "[load_library] function constants of a bundle have the values that it was "
                "compiled with. Give them to `metalloid compile --constant`."
            )
        return {}

    def _program(self, entry: EntryPoint, values: Mapping[int, str]) -> Program:
        number = self._names.index(entry.name)
        files = self._container.folder(f"{self._target}/{number}")
        return self.device.restore(entry, files, self._target)

    def _kernel_recipe(self, name: str, values: Mapping[int, str]) -> tuple[Any, ...]:
        return _restored_kernel, (*self._recipe, name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __reduce__(self) -> tuple[Any, ...]:
        return load_library, self._recipe


def _restored_kernel(path: str, device: str, name: str) -> Any:
    return load_library(path, device).function(name)


def load_library(path: str | os.PathLike[str], device: str | Device | None = None) -> Library:
    """Load the kernels of a bundle, which `save_library` or ``metalloid compile`` has made.

    This needs no compiler: the package ``ziglang`` need not be installed. Loading a bundle runs
    machine code from the file, so load only those that you trust.

    Parameters
    ----------
    path : path-like
        The bundle, usually ``*.mtlb``.
    device : str or Device, optional
        The device that will run the kernels; by default the default device if the bundle has code
        for it, else another one.

    Returns
    -------
    Library
        Its kernels have been compiled: there is no ``kernel.asm``, and function constants have the
        values of the bundle.

    Raises
    ------
    BundleError
        If the file is no bundle, is damaged, was made for other machines, or by a version of
        metalloid whose launches are different.
    FileNotFoundError
        If there is no such file.
    DeviceUnavailable
        If this machine has no such device.

    Examples
    --------
    See `save_library`.
    """
    container = Container(path)
    native_build.use_prebuilt(container.folder("libraries"))
    known = container.index["targets"]
    requested = device or settings.device
    reasons = []
    for candidate in _devices([requested] if requested else kinds(), bool(requested)):
        for target in candidate.bundle_targets():
            if target not in known:
                continue
            if known[target]["abi"] == candidate.bundle_abi:
                return BundledLibrary(path, container, candidate, target)
            reasons.append(
                f"its code for {target} is of metalloid {container.index['metalloid']}, whose "
                "launches are different; compile it again with this version"
            )
            break
        else:
            reasons.append(f"it has no code for {candidate.name} of this machine")
    raise BundleError(
        f"[load_library] {os.fspath(path)!r} cannot run here: {'; '.join(reasons)}. It has code "
        f"for {', '.join(known)}."
    )


def _devices(names: Any, is_requested: bool) -> Iterator[Device]:
    for name in names:
        try:
            yield get_device(name)
        except DeviceUnavailable:
            if is_requested:
                raise
