"""C sources of our own, compiled on first use for the machine that runs them.

Where there is no compiler, a bundle of kernels brings what they compile to (`use_prebuilt`).
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import cast

from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.cache import Cache, digest, shared_cache
from metalloid.compiler.toolchain.fingerprint import compiler_fingerprint
from metalloid.compiler.toolchain.link import shared_object
from metalloid.errors import DeviceUnavailable

_FLAGS = (
    "-mcpu=baseline", "-c", "-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-std=c11",
    "-fno-sanitize=all", "-fno-stack-protector", "-fomit-frame-pointer", "-D_GNU_SOURCE",
)  # fmt: skip
#: Headers of sources that call the interpreter.
OF_PYTHON = Path(__file__).parents[2] / "runtime" / "native"
#: Free-threaded interpreters have other structures, and no stable interface.
HAS_GIL = "t" not in getattr(sys, "abiflags", "")
#: macOS links the interpreter's functions differently.
_CAN_CALL_PYTHON = sys.platform == "linux" and HAS_GIL


#: Shared objects of bundles by `sources_digest`.
_prebuilt: ChainMap[str, bytes] = ChainMap()


def use_prebuilt(libraries: Mapping[str, bytes]) -> None:
    """Use shared objects where nothing can be compiled.

    Parameters
    ----------
    libraries : mapping
        By `sources_digest`; read when one is needed.
    """
    if not clang.is_available():  # else they are compiled
        _prebuilt.maps.append(cast("MutableMapping[str, bytes]", libraries))


def load_python_library(folder: Path, name: str,
                        headers: Sequence[Path] = ()) -> ctypes.PyDLL | None:  # fmt: skip
    """The library of the sources in a folder, which call the interpreter; None if they cannot.

    Parameters
    ----------
    folder, name, headers
        See `build`.
    """
    if not _CAN_CALL_PYTHON:
        return None
    try:
        path = build(folder, name, shared_cache(), (*headers, OF_PYTHON))
        return ctypes.PyDLL(str(path))
    except DeviceUnavailable:  # no compiler
        return None
    except OSError:  # an embedding host that does not export the interpreter's functions
        return None


def build(folder: Path, name: str, cache: Cache, headers: Sequence[Path] = (),
          subfolders: Sequence[str] = (), target: str = "") -> Path:  # fmt: skip
    """The shared object of all sources in a folder, compiled if it is not in `cache`.

    Parameters
    ----------
    folder : Path
    name : str
        Of the library.
    cache : Cache
    headers : sequence of Path
        Folders whose headers the sources include besides their own.
    subfolders : sequence of str
        Those of `folder` with more sources.
    target : str
        The machine that will run it, as zig names it; by default this one.

    Raises
    ------
    DeviceUnavailable
        If it must be compiled and there is no compiler.
    """
    target = target or host()
    file = f"{name}.so"
    sources = sources_digest(folder, name, tuple(headers), tuple(subfolders), target)
    key = digest("native", compiler_fingerprint(), sources)
    files = cache.load(key)
    if files is None and sources in _prebuilt:
        code = _prebuilt[sources]
        key = digest("prebuilt", code)
        files = cache.load(key) or cache.save(key, {file: code})
    if files is None:
        compiled = objects(folder, target, headers, subfolders)
        files = cache.save(key, {file: shared_object(compiled, f"metalloid-{file}")})
    return files[file]


@functools.cache
def sources_digest(folder: Path, name: str, headers: tuple[Path, ...] = (),
                   subfolders: tuple[str, ...] = (), target: str = "") -> str:  # fmt: skip
    """Changes when the sources of a library do; see `build`."""
    folders = (folder, *(f"{folder}/{each}" for each in subfolders), *headers)
    included = [path for each in folders for path in _files(str(each), ".h")]
    contents = []
    for path in (*_sources(folder, subfolders), *included):
        with open(path, "rb", buffering=0) as file:  # loads of bundles wait for this
            contents.append(file.read())
    return digest(name, target or host(), *_FLAGS, *contents)


def _sources(folder: Path, subfolders: Sequence[str]) -> list[str]:
    folders = (str(folder), *(f"{folder}/{each}" for each in subfolders))
    return sorted(path for each in folders for path in _files(each, ".c", ".S"))


def _files(folder: str, *suffixes: str) -> list[str]:
    """Files of a folder by their suffixes, sorted."""
    return sorted(f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(suffixes))


def host() -> str:
    """The machine as zig names it; a target by name comes with zig's own system headers."""
    machine = platform.machine().lower()
    architecture = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if platform.system() == "Darwin":
        return f"{architecture}-macos"
    if platform.libc_ver()[0] != "glibc":
        return f"{architecture}-linux-musl"
    return linux(architecture)


def linux(architecture: str) -> str:
    """Linux with the C library of most distributions, as zig names it."""
    return f"{architecture}-linux-gnu.2.17"


def objects(folder: Path, target: str, headers: Sequence[Path] = (),
            subfolders: Sequence[str] = ()) -> dict[str, bytes]:  # fmt: skip
    """The object files of the sources that `build` compiles by name, for a machine of zig's names.

    Raises
    ------
    DeviceUnavailable
        If one does not compile.
    """
    import tempfile  # here, as what has been compiled runs without them
    from concurrent.futures import ThreadPoolExecutor

    with tempfile.TemporaryDirectory(prefix="metalloid-") as scratch, ThreadPoolExecutor() as pool:
        flags = ["-target", target, *_FLAGS, *(f"-I{source_folder}" for source_folder in headers)]
        compile_one = functools.partial(_object, flags=flags, folder=Path(scratch))
        compiled = pool.map(compile_one, _sources(folder, subfolders))
        return {path.name: path.read_bytes() for path in compiled}


def _object(source: str, flags: Sequence[str], folder: Path) -> Path:
    name = os.path.basename(source)
    path = folder / f"{name}.o"
    outcome = clang.run(["cc", *flags, "-o", str(path), source], scratch=folder)
    if outcome.status != 0:
        raise DeviceUnavailable(f"[compiler] our own {name} does not compile:\n{outcome.messages}")
    return path
