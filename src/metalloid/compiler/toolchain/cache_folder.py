"""Folders whose code this process may run: those that only its user may write to.

Code from the cache is loaded into the process, and checksums in the folder prove nothing: a user
that can write the code can write the checksums. So the rule is pip's: a folder is used only if the
effective user owns it and no other user may write to it, and it is made readable for that user
alone.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_FOR_US_ALONE = 0o700
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


class UntrustedFolder(OSError):
    """A folder that another user owns or may write to; the text says which and why."""


def open_private(base: Path, name: str, is_ours: bool) -> Path:
    """The folder `name` in `base`, made if needed, after checks of both.

    Parameters
    ----------
    base : Path
        Where it lies. A folder for all (sticky, as ``/tmp`` is) will do.
    is_ours : bool
        Whether only this package uses `base`, so that its mode may be changed.

    Raises
    ------
    UntrustedFolder
        If another user owns one of them, or may write to it.
    OSError
        If it cannot be made.
    """
    base.mkdir(mode=_FOR_US_ALONE, parents=True, exist_ok=True)
    folder = base / name
    folder.mkdir(mode=_FOR_US_ALONE, exist_ok=True)
    _check_base(base, is_ours)
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Refuse a folder of code that is not this user's alone; one that is has its mode narrowed.

    Raises
    ------
    UntrustedFolder
    """
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise UntrustedFolder(f"{folder} is not a folder")
    _check_owner(folder, status, ())
    if status.st_mode & _WRITABLE_BY_OTHERS:
        folder.chmod(_FOR_US_ALONE)


def check_entry(entry: Path) -> None:
    """Refuse an entry of the cache that another user owns or may have written to.

    Raises
    ------
    UntrustedFolder
    """
    status = entry.lstat()
    _check_owner(entry, status, ())
    if not stat.S_ISDIR(status.st_mode) or status.st_mode & _WRITABLE_BY_OTHERS:
        raise UntrustedFolder(f"other users may write to {entry}")


def _check_base(base: Path, is_ours: bool) -> None:
    status = base.stat()
    _check_owner(base, status, (_ROOT,))
    if not status.st_mode & _WRITABLE_BY_OTHERS or status.st_mode & stat.S_ISVTX:
        return  # in a sticky folder only the owner of a file can replace it
    if is_ours and status.st_uid == _user():
        base.chmod(_FOR_US_ALONE)
        return
    raise UntrustedFolder(
        f"other users may write to {base} (mode {stat.S_IMODE(status.st_mode):04o})"
    )


def _check_owner(path: Path, status: os.stat_result, trusted: tuple[int, ...]) -> None:
    user = _user()
    if user is not None and status.st_uid not in (user, *trusted):
        raise UntrustedFolder(
            f"{path} belongs to {_name(status.st_uid)}, this process to {_name(user)}"
        )


def _user() -> int | None:
    """The effective user; None on a system that has none."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def _name(user: int) -> str:
    import pwd

    try:
        return f"user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"user {user}"
