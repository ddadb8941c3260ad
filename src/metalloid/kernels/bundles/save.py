"""Compile kernels ahead of time, to a bundle."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import metalloid
from metalloid.compiler.frontend.unit import Bounds, bundle_facts
from metalloid.compiler.toolchain.target import MathMode
from metalloid.errors import ArgumentError
from metalloid.kernels.bundles.container import write_container
from metalloid.kernels.library import library
from metalloid.runtime.devices.offline import OfflineDevice


def save_library(
    file: str | os.PathLike[str],
    source: str | None = None,
    *,
    targets: Sequence[str],
    path: str | os.PathLike[str] | None = None,
    kernels: Sequence[str] | None = None,
    constants: Mapping[Any, Any] | None = None,
    include_dirs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    math_mode: MathMode = "safe",
    defines: Mapping[str, Any] | None = None,
    bounds: Bounds | None = None,
    include_source: bool = True,
) -> None:
    """Compile kernels to a bundle, a file that `load_library` runs without a compiler.

    A bundle has machine code for CPUs and PTX for NVIDIA GPUs, the signatures of the kernels, and
    the native code of metalloid that launches need. It runs with the version of metalloid that has
    made it, and others whose launches are the same; `load_library` says if it must be made again.
    CPU code runs on Linux with glibc 2.17 or later. Apple GPUs do not load bundles:
    give the text to `library` there.

    Parameters
    ----------
    file : path-like
        The bundle to write, usually ``*.mtlb``; it is replaced when the new one is complete.
    source, path, include_dirs, math_mode, defines, bounds
        See `library`.
    targets : sequence of str
        Such as ``["cpu:x86-64-v3", "cpu:aarch64", "cuda:sm_80"]``. CPUs run code of their level
        (x86-64-v2, -v3, -v4) or of a lower one, NVIDIA GPUs that of their architecture or of an
        older one.
    kernels : sequence of str, optional
        Names of the kernels to compile; by default all.
    constants : mapping, optional
        Values of function constants, by name or index, for all kernels.
    include_source : bool, optional
        Whether the bundle has the MSL source.

    Raises
    ------
    CompileError
        If the text has errors, or a kernel does not compile for a target.
    UnknownFunction
        If there is no kernel of a name.
    ArgumentError
        If there are no targets, or no kernels.
    DeviceUnavailable
        If a target is unknown, or bundles cannot have code for it.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import metalloid as mtl, numpy as np, tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "kernels.mtlb")
    >>> mtl.save_library(file, '''
    ... kernel void twice(device float* x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }
    ... ''', targets=["cpu:x86-64-v2"])
    >>> lib = mtl.load_library(file, device="cpu")
    >>> x = np.ones(3, np.float32)
    >>> event = lib.twice(x, threads=3)
    >>> x.tolist()
    [2.0, 2.0, 2.0]
    """
    if isinstance(targets, str) or not targets:
        raise ArgumentError(
            f"[save_library] targets must be a list of targets such as ['cpu:x86-64-v3'], "
            f"got {targets!r}."
        )
    files: dict[str, bytes] = {}
    index: dict[str, Any] = {"metalloid": metalloid.__version__, "targets": {}}
    for target in dict.fromkeys(targets):
        lib = library(
            source, path=path, include_dirs=include_dirs, math_mode=math_mode, defines=defines,
            target=target, bounds=bounds,
        )  # fmt: skip
        names = list(lib.functions) if kernels is None else list(dict.fromkeys(kernels))
        if not names:
            raise ArgumentError("[save_library] there are no kernels to compile.")
        device, unit = lib.device, lib._unit
        assert isinstance(device, OfflineDevice)
        values = lib._constant_values(constants or {})
        for number, name in enumerate(names):
            compiled = device.bundle_files(unit, lib._entry(name), values)
            files.update({f"{target}/{number}/{file}": data for file, data in compiled.items()})
        for sources, code in device.native_libraries().items():
            files[f"libraries/{sources}"] = code
        index["targets"][target] = {"abi": device.bundle_abi}
        index |= {"file": lib._file, "names": names, **bundle_facts(unit)}
    write_container(file, index, files, lib.source if include_source else "")
