"""Kernels that fail on the CPU: the launch ends, the process and the runtime do not."""

import mmap
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from native_kernels import harness
from native_kernels.harness import BOTH_MODES, FIBRE, LOOP, X86, word

#: A page that nothing may access; at a fixed address there may be memory.
_PAGE = mmap.mmap(-1, mmap.PAGESIZE, prot=0)
INACCESSIBLE = np.frombuffer(_PAGE, np.uint8).ctypes.data


def divisors(*numbers):
    return np.array([*numbers, 0], np.int32)


FAULTS = {
    "null write": ("wild_write", (0,), signal.SIGSEGV),
    "wild write": ("wild_write", (INACCESSIBLE,), signal.SIGSEGV),
    "wild read": ("wild_read", (INACCESSIBLE, word(0)), signal.SIGSEGV),
    "non-canonical address": ("wild_write", (1 << 63,), signal.SIGSEGV),
    "jump to nowhere": ("wild_jump", (0,), signal.SIGSEGV),
    "trap": ("trap", (), signal.SIGILL if X86 else signal.SIGTRAP),
}
if X86:
    FAULTS["division by zero"] = ("divide", (divisors(1, 0),), signal.SIGFPE)
    FAULTS["smallest by -1"] = ("divide", (divisors(-(2**31), -1),), signal.SIGFPE)


@BOTH_MODES
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_end_the_launch_only(kernels, threads, mode, fault):
    name, arguments, number = FAULTS[fault]
    outcome = kernels.run(name, 1000, 8, *arguments, mode=mode)
    assert (outcome.status, outcome.signal) == (harness.SIGNAL, number)
    assert outcome.valid & harness.THREADGROUP_VALID
    if fault.endswith(("write", "read")):
        assert outcome.address == arguments[0]
    if fault != "jump to nowhere":
        assert outcome.code != 0
    kernels.check_alive(mode)


@BOTH_MODES
def test_endless_recursion(kernels, threads, mode):
    outcome = kernels.run("recurse", 1000, 8, word(0), mode=mode)
    assert outcome.status == harness.STACK_OVERFLOW
    kernels.check_alive(mode)


def test_private_arrays_larger_than_the_stack(kernels, threads):
    assert kernels.run("large_frame", 100, 50, word(0), mode=LOOP).status == harness.OK
    outcome = kernels.run("large_frame", 100, 50, word(0), mode=FIBRE)
    assert outcome.status == harness.STACK_OVERFLOW
    kernels.check_alive(FIBRE)


@pytest.mark.parametrize(("mode", "depth"), [(LOOP, 40_000), (FIBRE, 1500)])
def test_deep_recursion_has_a_deep_stack(kernels, mode, depth):
    out = word(0)
    assert kernels.run("deep_sum", 1, 1, out, word(depth), mode=mode).status == harness.OK
    assert out[0] == depth * (depth + 1) // 2


def test_bus_error(kernels, tmp_path):
    path = tmp_path / "truncated"
    path.write_bytes(bytes(mmap.PAGESIZE))
    with path.open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        address = np.frombuffer(mapping, np.uint8).ctypes.data
        file.truncate(0)
        outcome = kernels.run("wild_write", 1, 1, address)
        assert (outcome.status, outcome.signal) == (harness.SIGNAL, signal.SIGBUS)
    kernels.check_alive(LOOP)


def test_the_faulting_thread_is_named(kernels, threads):
    outcome = kernels.run(
        "one_bad_thread", (40, 20, 6), (16, 4, 2), 64,
        np.array([2, 3, 1], np.uint32), np.array([5, 2, 1], np.uint32), mode=FIBRE,
    )  # fmt: skip
    assert outcome.status == harness.SIGNAL
    assert outcome.valid == harness.THREADGROUP_VALID | harness.THREAD_VALID
    assert outcome.address == 64
    assert tuple(outcome.threadgroup) == (2, 3, 1)
    assert tuple(outcome.thread) == (5, 2, 1)


def test_the_rest_of_a_failed_launch_is_abandoned(kernels):
    started = time.perf_counter()
    outcome = kernels.run("wild_write", 2**31, 1, 0)
    assert outcome.status == harness.SIGNAL
    assert time.perf_counter() - started < 5


def test_two_hundred_faults(kernels):
    for i in range(200):
        name, arguments, number = list(FAULTS.values())[i % len(FAULTS)]
        outcome = kernels.run(name, 64, 4, *arguments, mode=(LOOP, FIBRE)[i // 3 % 2])
        assert (outcome.status, outcome.signal) == (harness.SIGNAL, number)
        if i % 5 == 0:
            outcome = kernels.run("recurse", 64, 4, word(0), mode=(LOOP, FIBRE)[i % 2])
            assert outcome.status == harness.STACK_OVERFLOW
    kernels.check_alive(LOOP)
    kernels.check_alive(FIBRE)


def test_a_fault_outside_of_kernels_is_not_caught():
    script = (
        "import ctypes; from metalloid.backends.cpu.runtime import native_library; native_library.runtime();"
        "ctypes.string_at(8)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == -signal.SIGSEGV


def test_faulthandler_enabled_later_does_not_end_the_process():
    script = """
import faulthandler
from metalloid.backends.cpu.runtime import native_library
runtime = native_library.runtime()
faulthandler.enable()
outcome = native_library.Outcome()
entry = 8  # code that is not there
launch = native_library.job_layout(0).pack(entry, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
for _ in range(3):
    runtime.run(launch, outcome)
    assert outcome.status == 1, outcome.status
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.stdout == b"alive\n", done


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on address space")
def test_no_memory_for_stacks_ends_the_launch_only(kernels):
    script = """
import ctypes, resource, sys
from metalloid.backends.cpu.runtime import native_library
runtime, outcome = native_library.runtime(), native_library.Outcome()
kernel = ctypes.cast(ctypes.CDLL(sys.argv[1]).nothing, ctypes.c_void_p).value
def status(threads):
    words = (kernel, native_library.FIBRES, 0, threads, 1, 1, threads, 1, 1, 0, 0, 0, 0)
    runtime.run(native_library.job_layout(0).pack(*words), outcome)
    return outcome.status
runtime.configure(1)
assert status(32) == 0
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), -1))
print(status(1024), status(32), status(1024), status(64))
"""
    arguments = [sys.executable, "-W", "ignore", "-c", script, str(kernels.path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["5", "0", "5", "0"], done
