"""Compiled kernels on disk: checksummed, replaced atomically, capped in size, shared by processes.

The folder is the user's own (`cache_folder`): other users can neither read it nor write to it. An
entry is a folder of files. It is written under a temporary name and then renamed, so a reader
sees all of it or nothing; a process that loses the race takes the winner's. An entry whose
checksums do not hold is removed and made again.

Texts of kernels are compressed, as they are nine tenths of the bytes and are seldom read: `read`
and `read_text` return the contents of a file of an entry.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import time
import zlib
from collections.abc import Mapping
from pathlib import Path

try:
    from _blake2 import blake2b  # hashlib also loads OpenSSL, which takes longer than a bundle
except ImportError:
    from hashlib import blake2b

from metalloid.compiler.toolchain.cache_folder import UntrustedFolder, check_entry, open_private
from metalloid.errors import MetalloidError
from metalloid.settings import settings

_MANIFEST = "manifest.json"
_LAYOUT = "v1"  # of this folder; a change makes old entries invisible
_COMPRESSED = ".z"  # appended to the names of compressed files
#: Texts that only Python reads. Other files are loaded by programs.
_TEXTS = (".ll", ".cpp")
#: A smaller file takes a block of the disk in any case.
_MIN_COMPRESSED = 4096
#: Entries are counted, which takes a second for ten thousand, when so many have come, or an eighth.
_SAVES_BETWEEN_TRIMS = 64


def digest(*contents: str | bytes) -> str:
    """A name for the content of `contents`; their borders count."""
    state = blake2b(digest_size=20)
    for content in contents:
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def checksum(content: bytes) -> str:
    """The BLAKE2b digest of 160 bits, in hexadecimal."""
    return blake2b(content, digest_size=20).hexdigest()


def read(file: Path) -> bytes:
    """The contents of a file of an entry."""
    data = file.read_bytes()
    return zlib.decompress(data) if file.suffix == _COMPRESSED else data


def read_text(file: Path) -> str:
    """The text in a file of an entry, as it was given to `Cache.save`."""
    return read(file).decode("utf-8", "surrogatepass")


class Cache:
    """A folder of entries, or a temporary one for this process where that cannot be used.

    Parameters
    ----------
    folder : path
        Where entries live; made when the cache is first used.
    limit : int
        Bytes the entries may take; the ones not used for longest go first. 0 keeps nothing.
    is_ours : bool
        Whether nothing but the cache lives in `folder`.

    Attributes
    ----------
    refusal : str
        Why the folder is not used, if it cannot be trusted; else empty.
    """

    def __init__(self, folder: Path, limit: int, is_ours: bool = False) -> None:
        self.folder, self.limit = folder / _LAYOUT, limit
        self.refusal = ""
        self._is_ours = is_ours
        self._is_checked = False
        self._temporary: Path | None = None
        self._saves_to_trim = 1

    def _root(self) -> Path | None:
        """The folder, made and checked when it is first needed; None if it cannot be used."""
        is_there = self.folder.is_dir()
        if not is_there and self.limit <= 0:
            return None
        if not (self._is_checked and is_there):
            try:
                open_private(self.folder.parent, _LAYOUT, self._is_ours)
            except UntrustedFolder as error:
                self.refusal = str(error)
                import logging  # here, as it is for warnings

                logging.getLogger("metalloid").warning(
                    "the cache of compiled kernels is not used: %s. Set METALLOID_CACHE_DIR to a "
                    "folder of your own, to which nobody else may write.", error,
                )  # fmt: skip
            except OSError:  # a read-only home, a full disk
                return None
            self._is_checked = True
        return None if self.refusal else self.folder

    def load(self, key: str) -> dict[str, Path] | None:
        """Files of the entry `key` by name, their checksums verified; None if there is none.

        Texts are read by `read_text`.
        """
        for root in (self._root(), self._temporary):
            if root is None:
                continue
            entry = _entry(root, key)
            inode = _inode(entry)
            if inode is None:
                continue
            try:
                if root is self.folder:
                    check_entry(entry)
                files = _verified(entry)
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                # Unless another process has replaced it meanwhile.
                if _inode(entry) == inode:
                    _delete(entry)
                continue
            with contextlib.suppress(OSError):
                os.utime(entry / _MANIFEST)
            return files
        return None

    def save(self, key: str, files: Mapping[str, bytes | str]) -> dict[str, Path]:
        """Write the entry `key` and return its files; what cannot be kept on disk is kept aside."""
        contents = {
            name: data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
            for name, data in files.items()
        }
        root = self._root() if self.limit > 0 and self._temporary is None else None
        if root is not None:
            try:
                written = _write(root, key, contents)
            except OSError:  # a read-only home, a full disk
                pass
            else:
                self._saves_to_trim -= 1
                if self._saves_to_trim <= 0:
                    self.trim()
                return written
        try:
            if self._temporary is None:
                self._temporary = _temporary_folder("metalloid-")
                atexit.register(_remove, self._temporary, os.getpid())
            return _write(self._temporary, key, contents)
        except OSError as error:
            import tempfile

            raise MetalloidError(
                f"[cache] compiled code can be kept neither in {self.folder} nor in "
                f"{tempfile.gettempdir()} ({error.strerror or error}). Free some space, or set "
                "METALLOID_CACHE_DIR or TMPDIR to a folder with room."
            ) from error

    def discard(self, key: str) -> None:
        """Remove the entry `key`, if there is one."""
        for root in (self._root(), self._temporary):
            if root is not None:
                _delete(_entry(root, key))

    def entries(self) -> list[tuple[Path, int, float]]:
        """``(folder, bytes, time of last use)`` of every entry on disk."""
        values = []
        for manifest in self.folder.glob(f"??/*/{_MANIFEST}"):
            with contextlib.suppress(OSError):
                size = sum(file.stat().st_size for file in manifest.parent.rglob("*"))
                values.append((manifest.parent, size, manifest.stat().st_mtime))
        return values

    def trim(self, limit: int | None = None) -> int:
        """Remove entries, the least recently used first, until `limit` holds; how many went."""
        limit = self.limit if limit is None else limit
        entries = sorted(self.entries(), key=lambda entry: entry[2])
        total, removed = sum(size for _, size, _ in entries), 0
        for folder, size, _ in entries:
            if total <= limit:
                break
            _delete(folder)
            total, removed = total - size, removed + 1
        self._saves_to_trim = max(_SAVES_BETWEEN_TRIMS, (len(entries) - removed) // 8)
        self._remove_abandoned()
        return removed

    def clear(self) -> int:
        """Remove everything; how many entries that were."""
        if self._root() is None:
            return 0
        count = len(self.entries())
        _delete(self.folder)
        return count

    def _remove_abandoned(self) -> None:
        """Temporary folders of processes that died while writing."""
        hour_ago = time.time() - 3600
        for folder in self.folder.glob("tmp-*"):
            with contextlib.suppress(OSError):
                if folder.stat().st_mtime < hour_ago:
                    _delete(folder)


def _remove(folder: Path, process: int) -> None:
    """Remove a temporary folder at the end of its process, but not of a child that was forked."""
    if os.getpid() == process:
        _delete(folder)


def _delete(folder: Path) -> None:
    import shutil  # here, as most programs delete nothing

    shutil.rmtree(folder, ignore_errors=True)


def _temporary_folder(prefix: str, root: Path | None = None) -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix=prefix, dir=root))


def _entry(root: Path, key: str) -> Path:
    return root / key[:2] / key


def _inode(entry: Path) -> int | None:
    """The identity of an entry, which its replacement does not have; None without an entry."""
    try:
        return entry.lstat().st_ino
    except OSError:
        return None


def _verified(entry: Path) -> dict[str, Path]:
    manifest = json.loads((entry / _MANIFEST).read_bytes())
    for name, checksum in manifest.items():
        status = (entry / name).stat()
        if _digest_of(entry / name, status.st_mtime_ns, status.st_size, status.st_ino) != checksum:
            raise ValueError(f"{name} is damaged")
    return {name.removesuffix(_COMPRESSED): entry / name for name in manifest}


@functools.lru_cache(maxsize=4096)
def _digest_of(file: Path, modified: int, size: int, inode: int) -> str:
    # Every kernel asks for the precompiled header, megabytes, and for a hundred stub headers.
    return digest(file.read_bytes())


def _write(root: Path, key: str, files: Mapping[str, bytes]) -> dict[str, Path]:
    entry = _entry(root, key)
    files = dict(_stored(name, data) for name, data in files.items())
    entry.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = _temporary_folder("tmp-", root)
    try:
        for name, data in files.items():
            (temporary / name).parent.mkdir(exist_ok=True)  # a header's name may hold a folder
            (temporary / name).write_bytes(data)
        manifest = {name: digest(data) for name, data in files.items()}
        (temporary / _MANIFEST).write_text(json.dumps(manifest))
        try:
            temporary.rename(entry)
        except OSError:
            if not (entry / _MANIFEST).exists():
                raise
            # Another process was first. What it wrote is what we would have written.
            _delete(temporary)
    except BaseException:
        _delete(temporary)
        raise
    return {name.removesuffix(_COMPRESSED): entry / name for name in files}


def _stored(name: str, data: bytes) -> tuple[str, bytes]:
    """A file's name and contents in an entry."""
    if name.endswith(_TEXTS) and len(data) >= _MIN_COMPRESSED:
        return name + _COMPRESSED, zlib.compress(data, 1)
    return name, data


_shared: dict[tuple[str, int], Cache] = {}


def shared_cache() -> Cache:
    """The cache that the present settings name."""
    where = (settings.cache_dir, settings.cache_bytes)
    if where not in _shared:
        _shared[where] = Cache(_folder(where[0]), where[1], is_ours=not where[0])
    return _shared[where]


def _folder(configured: str) -> Path:
    if configured:
        return Path(configured).expanduser()
    from platformdirs import user_cache_path  # not needed if a folder is set

    return user_cache_path("metalloid", appauthor=False)
