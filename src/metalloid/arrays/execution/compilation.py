"""Kernels of plans, compiled several at a time: most of the time is that of clang's processes."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable

from metalloid.arrays.codegen.kernel_source import Rendered
from metalloid.arrays.metal import metal_source
from metalloid.kernels.kernel import Kernel
from metalloid.kernels.library import generated_library
from metalloid.runtime.devices.device import Device

_MAX_KERNELS = 4096
#: Hashes of the latest arguments of `_compiled`, as many as it remembers kernels.
_requested: dict[int, None] = {}


def full_text(rendered: Rendered) -> str:
    """The text that is compiled: the kernel after the Metal sources that it calls."""
    head = "#include <metal_stdlib>\nusing namespace metal;\n\n"
    return head + "\n".join([metal_source(*rendered.files), rendered.text])


def compiled(rendered: Rendered, device: Device) -> Kernel:
    """The kernel of a text."""
    return _compiled(full_text(rendered), rendered.name, device)


@functools.lru_cache(maxsize=_MAX_KERNELS)
def _compiled(text: str, name: str, device: Device) -> Kernel:
    macros = dict.fromkeys(device.traits.macros, True)
    # The texts and launches are generated from shapes, and indices in arrays are checked or wrapped
    # (ir/index_checks.py): accesses are inside, and small calls need no proof.
    return generated_library(text, macros, device)[name]


def compile_ahead(kernels: Iterable[Rendered], device: Device) -> None:
    """Compile those that have not been, at the same time, so that `compiled` returns at once."""
    missing = {}
    for rendered in kernels:
        key = full_text(rendered), rendered.name, device
        if hash(key) not in _requested:
            missing[hash(key)] = key
    _requested.update(dict.fromkeys(missing))
    while len(_requested) > _MAX_KERNELS:
        _requested.pop(next(iter(_requested)), None)
    workers = min(len(missing), device.traits.cores, os.cpu_count() or 1)
    if workers < 2:
        return
    from concurrent.futures import ThreadPoolExecutor  # most programs compile nothing

    with ThreadPoolExecutor(workers, "metalloid-compile") as pool:
        try:
            for future in [pool.submit(_compiled, *key) for key in missing.values()]:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
