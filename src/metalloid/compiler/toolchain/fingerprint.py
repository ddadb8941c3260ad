"""The identity of the compiler, which keys of the cache contain."""

from __future__ import annotations

import functools

from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import digest, shared_cache
from metalloid.errors import DeviceUnavailable

_FILE = "fingerprint.txt"


@functools.cache
def compiler_fingerprint() -> str:
    """Changes when the compiler does.

    Without a compiler it is that of the last one that used this cache, so that what it compiled
    still runs where ``ziglang`` has been removed.
    """
    cache, key = shared_cache(), digest("fingerprint of the last compiler")
    files = cache.load(key)
    try:
        last = files[_FILE].read_text() if files else ""
    except FileNotFoundError:  # another process has trimmed the cache
        last = ""
    try:
        path = clang.executable()
    except DeviceUnavailable:
        return last
    status = path.stat()
    own = f"{path}:{status.st_size}:{status.st_mtime_ns}"
    if own != last and cache.limit > 0:
        cache.discard(key)
        cache.save(key, {_FILE: own})
    return own
