"""Launches against the extents of their arguments: proofs."""

from __future__ import annotations

import ctypes
import itertools
import struct

from metalloid.backends.cpu.compile.compiled_kernel import BoundsRequest
from metalloid.backends.cpu.runtime import native_library
from metalloid.compiler.bounds.table import ARGUMENT, BoundsTable
from metalloid.runtime.launch.launches import Arguments

_NODE, _CHECK, _READ = struct.Struct("=4q"), struct.Struct("=6q"), struct.Struct("=3Q")
_HEAD = struct.Struct("=4Q4Q")
_PROVEN_BYTES = 8 * (1 + 16 * 4 * 60)  # mtl_proven in bounds.c
#: After so many versions of a kernel, all accesses are checked.
_MAX_VERSIONS = 3


def table_of_pointees(arguments: Arguments) -> int:
    """Address of a table of the objects that pointers in memory of a launch point into, or 0.

    Their number, and address and bytes of each, for kernels that look up what other pointers point
    to (native/memory/objects.c). It lives as long as the arguments.
    """
    if not arguments.pointees:
        return 0
    objects = {
        (ctypes.c_uint64.from_address(at).value - before, nbytes)
        for at, (before, nbytes) in arguments.pointees.items()
    }
    words = len(objects), *itertools.chain.from_iterable(sorted(objects))
    table = (ctypes.c_uint64 * len(words))(*words)
    arguments.keep_alive.append(table)
    return ctypes.addressof(table)


class RangeProof:
    """The proof that accesses of a launch stay within their objects (native/bounds.c).

    Parameters
    ----------
    table : BoundsTable
        Of the kernel.
    words : int
        Number of its parameters.

    Attributes
    ----------
    request : BoundsRequest
        The accesses that the kernel's code has to check now: those that some launch could not
        prove.
    arguments : set of int
        Positions of the arguments whose contents the proof reads.
    """

    def __init__(self, table: BoundsTable, words: int) -> None:
        self.request = BoundsRequest(checks=True)
        self._versions = 0
        self._table = table
        self._nodes = ctypes.create_string_buffer(
            b"".join(_NODE.pack(*node) for node in table.nodes) or b"\0"
        )
        self._checks = ctypes.create_string_buffer(self._packed_checks() or b"\0")
        reads = sorted(
            {(n[1], n[2], (n[0] >> 8) // 8) for n in table.nodes if n[0] & 0xFF == ARGUMENT}
        )
        self._reads = ctypes.create_string_buffer(
            b"".join(_READ.pack(*read) for read in reads) or b"\0"
        )
        self._proven = ctypes.create_string_buffer(_PROVEN_BYTES)
        memory = (self._nodes, self._checks, self._reads, self._proven)
        self._head = ctypes.create_string_buffer(
            _HEAD.pack(
                len(table.nodes), len(table.sites), words, len(reads),
                *map(ctypes.addressof, memory),
            )
        )  # fmt: skip
        self.address = ctypes.addressof(self._head)
        self._outside = (ctypes.c_uint8 * max(len(table.sites), 1))()
        self.arguments = {word for word, _, _ in reads}
        self._is_inside = native_library.runtime().is_inside
        #: Whether any launch has something to prove.
        self.is_needed = any(site["node"] != -2 for site in table.sites)

    def _packed_checks(self) -> bytes:
        request = self.request
        return b"".join(
            _CHECK.pack(
                site["node"], site["word"], site["bytes"], site["first"], site["end"],
                request.every or site["node"] == -2 or number in request.sites,
            )
            for number, site in enumerate(self._table.sites)
        )  # fmt: skip

    def holds(self, job: bytes) -> bool:
        """Whether the accesses of a job are inside that the code does not check."""
        return bool(self._is_inside(self.address, job, None))

    def check_more(self, job: bytes) -> None:
        """Let the code check what a job cannot prove."""
        self._is_inside(self.address, job, self._outside)
        outside = {number for number, each in enumerate(self._outside) if each}
        provable = {n for n, site in enumerate(self._table.sites) if site["node"] != -2}
        sites = (outside & provable) | set(self.request.sites)
        self._versions += 1
        every = self._versions >= _MAX_VERSIONS or sites >= provable
        self._set(BoundsRequest(True, every, () if every else tuple(sorted(sites))))

    def check_all(self) -> None:
        """Let the code check all accesses."""
        self._set(BoundsRequest(True, every=True))

    def _set(self, request: BoundsRequest) -> None:
        self.request = request
        ctypes.memmove(self._checks, self._packed_checks(), ctypes.sizeof(self._checks) - 1)
