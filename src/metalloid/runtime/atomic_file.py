"""Atomic replacement of files: write a temporary file, then rename it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces the one at `path` if the block succeeds.

    After an error, or if the process or the machine stops, the old file is unchanged. The new one
    has its permissions and, where that is allowed, its owner. A symbolic link is kept.

    Raises
    ------
    OSError
        If the old file is not writable, or the new one cannot be written.
    """
    import secrets  # here, as most programs write no files

    target = Path(os.path.realpath(path))
    old = target.stat() if target.exists() else None
    if old is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = target.with_name(f".metalloid-{secrets.token_hex(8)}.part")
    try:
        # The umask sets its permissions until the old file's are copied.
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            if old is not None:
                _copy_permissions(file.fileno(), old)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(temporary):
            error.filename = str(path)
        raise
    _sync_folder(target.parent)


def _copy_permissions(file: int, old: os.stat_result) -> None:
    if not hasattr(os, "fchown"):  # Windows
        return
    with contextlib.suppress(PermissionError):  # only root may change the owner
        os.fchown(file, old.st_uid, old.st_gid)
    os.fchmod(file, stat.S_IMODE(old.st_mode) & 0o777)


def _sync_folder(folder: Path) -> None:
    """Sync the directory entry, on systems that can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
