"""Build the test kernels and launch them through the native runtime."""

import ctypes
import platform
from pathlib import Path

import numpy as np
import pytest

from metalloid.backends.cpu.runtime import native_library
from metalloid.compiler.toolchain import clang
from metalloid.compiler.toolchain.link import shared_object

FOLDER = Path(__file__).parent
ABI = native_library.HEADERS

FLAGS = (
    "cc", "-c", "-O2", "-g0", "-fPIC", "-mcpu=baseline", "-fno-sanitize=all", "-Wall", "-Wextra",
    "-Wno-infinite-recursion",
    "-fstack-clash-protection",  # no stack frame may step over the guard
)  # fmt: skip

LOOP, FIBRE = 0, 1
(
    OK, SIGNAL, STACK_OVERFLOW, BARRIER_MISSED, LANE_OUT_OF_RANGE, OUT_OF_MEMORY, BARRIERS_DIFFER,
    BAD_MODULO, BAD_DESCRIPTOR, UNKNOWN_TICKET,
) = range(10)  # fmt: skip
THREADGROUP_VALID, THREAD_VALID = 1, 2

BOTH_MODES = pytest.mark.parametrize("mode", [LOOP, FIBRE], ids=["loop", "fibre"])
X86 = platform.machine() in ("x86_64", "AMD64")


def build_kernels(folder):
    """The shared object of all C files in this folder."""
    objects = {}
    for source in sorted(FOLDER.glob("*.c")):
        path = folder / f"{source.stem}.o"
        outcome = clang.run([*FLAGS, f"-I{ABI}", "-o", str(path), str(source)])
        assert outcome.status == 0, outcome.messages
        objects[path.name] = path.read_bytes()
    library = folder / "kernels.so"
    library.write_bytes(shared_object(objects, library.name))
    return library


class Kernels:
    """Launches of the test kernels."""

    def __init__(self, folder):
        self.runtime = native_library.runtime()  # first: the kernels are linked against it
        self.path = build_kernels(folder)
        self.library = ctypes.CDLL(str(self.path))

    def descriptor(self, name, grid, group, *arguments, mode=LOOP, threadgroup_bytes=0, cost=None):
        """A launch as bytes. Arguments are arrays and addresses; sizes are padded with ones."""
        entry = ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value
        words = [x.ctypes.data if isinstance(x, np.ndarray) else x for x in arguments]
        slot, limit_ns = 0 if cost is None else cost.ctypes.data, 0
        return native_library.job_layout(len(words)).pack(
            entry, mode, len(words), *_triple(grid), *_triple(group), threadgroup_bytes, 0, slot,
            limit_ns, *words,
        )  # fmt: skip

    def run(self, *launch, **options):
        """Run a launch and return its outcome."""
        outcome = native_library.Outcome()
        status = self.runtime.run(self.descriptor(*launch, **options), outcome)
        assert status == outcome.status
        return outcome

    def submit(self, *launch, **options):
        """Queue a launch and return its ticket."""
        return self.runtime.submit(self.descriptor(*launch, **options))

    def wait(self, ticket, timeout=-1.0):
        """The outcome of a queued launch; None if the time has run out."""
        outcome = native_library.Outcome()
        return outcome if self.runtime.wait(ticket, timeout, outcome) else None

    def check_alive(self, mode):
        """The runtime still works."""
        counters = np.zeros(5000, np.uint32)
        assert self.run("count", 5000, 64, counters, mode=mode).status == OK
        assert (counters == 1).all()


def _triple(size):
    size = (size,) if isinstance(size, int) else size
    return (*size, *(1,) * (3 - len(size)))


def word(value):
    """An argument of type u32."""
    return np.array([value], np.uint32)
