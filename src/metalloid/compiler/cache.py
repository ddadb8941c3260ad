"""Compiled kernels on disk: checksummed, replaced atomically, capped in size, shared by processes.

An entry is a folder of files. It is written under a temporary name and renamed into place, so a
reader sees all of it or nothing; a process that loses the race takes the winner's. An entry whose
checksums do not hold is removed and made again.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from metalloid.settings import settings

_MANIFEST = "manifest.json"
_LAYOUT = "v1"  # of this folder; a change makes old entries invisible
#: Entries are counted, which takes a second for ten thousand, when so many have come, or an eighth.
_SAVES_BETWEEN_TRIMS = 64


def digest(*parts: str | bytes) -> str:
    """A name for the content of `parts`; their borders count."""
    state = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


class Cache:
    """A folder of entries, or a private one for this process where that cannot be written.

    Parameters
    ----------
    folder : path
        Where entries live; made when the first one is saved.
    limit : int
        Bytes the entries may take; the ones not used for longest go first. 0 keeps nothing.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit = folder / _LAYOUT, limit
        self._private: Path | None = None
        self._saves_to_trim = 1

    def load(self, key: str) -> dict[str, Path] | None:
        """Files of the entry `key` by name, their checksums verified; None if there is none."""
        for root in (self.folder, self._private):
            if root is None:
                continue
            entry = _entry(root, key)
            if not entry.exists():
                continue
            try:
                files = _verified(entry)
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                shutil.rmtree(entry, ignore_errors=True)
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
        if self.limit > 0 and self._private is None:
            try:
                written = _write(self.folder, key, contents)
            except OSError:  # a read-only home, a full disk
                pass
            else:
                self._saves_to_trim -= 1
                if self._saves_to_trim <= 0:
                    self.trim()
                return written
        if self._private is None:
            self._private = Path(tempfile.mkdtemp(prefix="metalloid-"))
            atexit.register(shutil.rmtree, self._private, ignore_errors=True)
        return _write(self._private, key, contents)

    def discard(self, key: str) -> None:
        """Remove the entry `key`, if there is one."""
        for root in (self.folder, self._private):
            if root is not None:
                shutil.rmtree(_entry(root, key), ignore_errors=True)

    def entries(self) -> list[tuple[Path, int, float]]:
        """``(folder, bytes, time of last use)`` of every entry on disk."""
        found = []
        for manifest in self.folder.glob(f"??/*/{_MANIFEST}"):
            with contextlib.suppress(OSError):
                size = sum(file.stat().st_size for file in manifest.parent.rglob("*"))
                found.append((manifest.parent, size, manifest.stat().st_mtime))
        return found

    def trim(self, limit: int | None = None) -> int:
        """Remove entries, the least recently used first, until `limit` holds; how many went."""
        limit = self.limit if limit is None else limit
        entries = sorted(self.entries(), key=lambda entry: entry[2])
        total, removed = sum(size for _, size, _ in entries), 0
        for folder, size, _ in entries:
            if total <= limit:
                break
            shutil.rmtree(folder, ignore_errors=True)
            total, removed = total - size, removed + 1
        self._saves_to_trim = max(_SAVES_BETWEEN_TRIMS, (len(entries) - removed) // 8)
        self._remove_abandoned()
        return removed

    def clear(self) -> int:
        """Remove everything; how many entries that were."""
        count = len(self.entries())
        shutil.rmtree(self.folder, ignore_errors=True)
        return count

    def _remove_abandoned(self) -> None:
        """Temporary folders of processes that died while writing."""
        hour_ago = time.time() - 3600
        for folder in self.folder.glob("tmp-*"):
            with contextlib.suppress(OSError):
                if folder.stat().st_mtime < hour_ago:
                    shutil.rmtree(folder, ignore_errors=True)


def _entry(root: Path, key: str) -> Path:
    return root / key[:2] / key


def _verified(entry: Path) -> dict[str, Path]:
    manifest = json.loads((entry / _MANIFEST).read_bytes())
    for name, checksum in manifest.items():
        status = (entry / name).stat()
        if _digest_of(entry / name, status.st_mtime_ns, status.st_size, status.st_ino) != checksum:
            raise ValueError(f"{name} is damaged")
    return {name: entry / name for name in manifest}


@functools.lru_cache(maxsize=4096)
def _digest_of(file: Path, modified: int, size: int, inode: int) -> str:
    # Every kernel asks for the precompiled header, megabytes, and for a hundred stub headers.
    return digest(file.read_bytes())


def _write(root: Path, key: str, files: Mapping[str, bytes]) -> dict[str, Path]:
    entry = _entry(root, key)
    entry.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix="tmp-", dir=root))
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
            shutil.rmtree(temporary, ignore_errors=True)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return {name: entry / name for name in files}


_shared: dict[tuple[str, int], Cache] = {}


def shared_cache() -> Cache:
    """The cache that the present settings name."""
    where = (settings.cache_dir, settings.cache_bytes)
    if where not in _shared:
        _shared[where] = Cache(_folder(where[0]), where[1])
    return _shared[where]


def _folder(configured: str) -> Path:
    if configured:
        return Path(configured).expanduser()
    from platformdirs import user_cache_path  # not needed by those who set a folder

    return user_cache_path("metalloid", appauthor=False)
