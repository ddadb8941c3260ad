"""The file format of bundles, ``.mtlb``.

A bundle is a ZIP archive. Its comment is ``metalloid bundle``, the version of the format, and the
BLAKE2b digest (160 bits, hexadecimal) of all bytes of the file before the digest. Its members are:

``bundle.json``
    Version of metalloid, name and options of the source, its kernels, and the targets: of each its
    name, its ABI, and the folder of each kernel's files.
``libraries/DIGEST``
    The native libraries of metalloid that launches need, by the digest of their sources.
``TARGET/N/...``
    The files of kernel number N, which `OfflineDevice.bundle_files` makes and `Device.restore`
    reads.
``source.metal``
    The MSL source, unless it is left out.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from metalloid.compiler.toolchain.cache import checksum
from metalloid.errors import BundleError

FORMAT = 1
_INDEX, _SOURCE = "bundle.json", "source.metal"
_MARK = b"metalloid bundle"
_DIGEST_CHARACTERS = 40
# Of the ZIP format: end of the directory, an entry of the directory, and the head of a member.
_END, _ENTRY = struct.Struct("<4s4H2LH"), struct.Struct("<4s6H3L5H2L")
_HEAD = struct.Struct("<4s5H3L2H")
_DEFLATED = 8
_DATE = (1980, 1, 1, 0, 0, 0)  # the same bundle has the same bytes


def write_container(
    path: str | os.PathLike[str], index: Mapping[str, Any], files: Mapping[str, bytes], source: str
) -> None:
    """Write a bundle; an old file stays until the new one is complete.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    import zipfile

    from metalloid.runtime.atomic_file import atomic_file

    memory = io.BytesIO()
    members = {_INDEX: json.dumps(index).encode(), **files}
    if source:
        members[_SOURCE] = source.encode("utf-8", "surrogatepass")
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)
        archive.comment = b"%s %d %s" % (_MARK, FORMAT, b"0" * _DIGEST_CHARACTERS)
    content = memory.getvalue()[:-_DIGEST_CHARACTERS]
    with atomic_file(Path(path)) as file:
        file.write(content + _digest(content))


class Container:
    """A bundle that has been read and checked.

    Attributes
    ----------
    index : dict
        Contents of ``bundle.json``.
    source : str
        The MSL source; empty if it was left out.

    Raises
    ------
    BundleError
        If the file is no bundle, is damaged, or has a format of a later version.
    FileNotFoundError, OSError
        If it cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        data = Path(path).read_bytes()
        content, known = data[:-_DIGEST_CHARACTERS], data[-_DIGEST_CHARACTERS:]
        _, mark, version = content[-len(_MARK) - 16 :].rpartition(_MARK + b" ")
        shown = os.fspath(path)
        if not mark:
            raise BundleError(
                f"[load_library] {shown!r} is not a bundle of kernels, or not all of it is there. "
                "`metalloid compile -o FILE.mtlb` makes bundles."
            )
        if version.strip() != b"%d" % FORMAT:
            raise BundleError(
                f"[load_library] {shown!r} has format {version.decode('ascii', 'replace').strip()} "
                f"of bundles; this version of metalloid reads format {FORMAT}."
            )
        if _digest(content) != known:
            raise BundleError(
                f"[load_library] {shown!r} is damaged: its checksum does not hold. Copy or make "
                "it again."
            )
        self._archive = _Archive(data)
        self.index: dict[str, Any] = json.loads(self._archive.read(_INDEX))
        self.source = ""
        if _SOURCE in self._archive.names:
            self.source = self._archive.read(_SOURCE).decode("utf-8", "surrogatepass")

    def folder(self, name: str) -> Mapping[str, bytes]:
        """The files in a folder, each read when it is needed."""
        return _Folder(self._archive, f"{name}/")


class _Archive:
    """The members of a ZIP archive in memory that `write_container` has written.

    The import of ``zipfile`` takes a sixth of the time of a load.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        #: Method of compression, size and offset by name.
        self.names: dict[str, tuple[int, int, int]] = {}
        _, _, _, _, count, _, at, _ = _END.unpack_from(data, data.rindex(b"PK\5\6"))
        for _ in range(count):
            head = _ENTRY.unpack_from(data, at)
            method, size, name_bytes, offset = head[4], head[8], head[10], head[-1]
            at += _ENTRY.size
            name = data[at : at + name_bytes].decode()
            self.names[name] = method, size, offset
            at += name_bytes + head[11] + head[12]

    def read(self, name: str) -> bytes:
        method, size, offset = self.names[name]
        head = _HEAD.unpack_from(self._data, offset)
        start = offset + _HEAD.size + head[-2] + head[-1]
        content = self._data[start : start + size]
        return zlib.decompress(content, -zlib.MAX_WBITS) if method == _DEFLATED else content


class _Folder(Mapping[str, bytes]):
    def __init__(self, archive: _Archive, prefix: str) -> None:
        self._archive, self._prefix = archive, prefix

    def __getitem__(self, name: str) -> bytes:
        return self._archive.read(self._prefix + name)

    def __iter__(self) -> Iterator[str]:
        names = self._archive.names
        return (n.removeprefix(self._prefix) for n in names if n.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _digest(content: bytes) -> bytes:
    return checksum(content).encode()
