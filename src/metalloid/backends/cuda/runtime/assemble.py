"""Assembles PTX to machine code for one GPU, by the driver."""

from __future__ import annotations

import ctypes

from metalloid.backends.cuda.runtime.driver import check, describe, driver, version
from metalloid.compiler.toolchain.cache import Cache, digest
from metalloid.errors import MetalloidError

_LOG_BYTES = 16 * 1024


def cubin(ptx: str, architecture: str, cache: Cache, kernel: str) -> bytes:
    """Machine code of `ptx` for the GPU of the current context, from the cache if it is there.

    Raises
    ------
    MetalloidError
        If the assembler refuses it, with its message.
    """
    key = digest("cubin", architecture, str(version()), ptx)
    files = cache.load(key)
    if files is None:
        files = cache.save(key, {"kernel.cubin": _assemble(ptx, kernel)})
    return files["kernel.cubin"].read_bytes()


def _assemble(ptx: str, kernel: str) -> bytes:
    bindings = driver()
    option = bindings.CUjit_option
    log = bytes(_LOG_BYTES)  # the binding writes into it
    options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    values = [log, _LOG_BYTES]
    text = ptx.encode() + b"\0"
    link = check(bindings.cuLinkCreate(2, options, values), "preparing the assembler")
    try:
        kind = bindings.CUjitInputType.CU_JIT_INPUT_PTX
        (status,) = bindings.cuLinkAddData(link, kind, text, len(text), b"kernel.ptx", 0, [], [])
        address = size = 0
        if not status:
            status, address, size = bindings.cuLinkComplete(link)
        if status:
            raise MetalloidError(
                f"[{kernel}] the driver's assembler refuses the kernel: {describe(status)}\n"
                + log.split(b"\0")[0].decode("utf-8", "replace")
            )
        return ctypes.string_at(int(address), int(size))
    finally:
        bindings.cuLinkDestroy(link)
