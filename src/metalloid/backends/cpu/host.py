"""The CPU of this machine: its model, threads and caches, and the target for clang."""

from __future__ import annotations

import functools
import itertools
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path

from metalloid.compiler.toolchain.cache import digest
from metalloid.compiler.toolchain.target import Target
from metalloid.setting_parsers import parse_size
from metalloid.settings import settings

_VECTOR_FEATURES = (
    ("avx512f", "AVX-512"), ("avx2", "AVX2"), ("sse4_2", "SSE4.2"), ("sve", "SVE"),
    ("asimd", "NEON"),
)  # fmt: skip


_TYPICAL_CACHE = 32 << 20

#: With prefetches, loops along arrays take 1.0 to 1.4 times as long on its Zen 4, and 0.9 to 1.15
#: times on a Xeon (Sapphire Rapids). Its gathers do not announce what comes next: elements at a
#: distance take seven times as long as by loads of single lanes, random ones 1.3 times.
_AMD = "AuthenticAMD"
#: Levels of x86-64, and what vectors they have.
_LEVELS = {"x86-64-v2": "SSE4.2", "x86-64-v3": "AVX2", "x86-64-v4": "AVX-512"}
#: What each level adds, by the names of ``/proc/cpuinfo`` (x86-64 psABI, table 3.1).
_FEATURES = {
    "x86-64-v2": "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3",
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}


@functools.cache
def cpu_description() -> dict[str, str]:
    """Facts about the first CPU, by the names of ``/proc/cpuinfo``; a few of them elsewhere."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0]
    except OSError:
        return {"model name": platform.processor() or platform.machine()}
    pairs = re.findall(r"^([^\t:]+)\s*:\s*(.*)$", first, re.M)
    return {name.strip(): value for name, value in pairs}


def usable_threads() -> int:
    """CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Physical memory of the machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@functools.cache
def cache_bytes() -> int:
    """Size of the largest cache; a typical one if unknown."""
    texts = [
        path.read_text().strip()
        for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    ]
    return max((parse_size(text) for text in texts if text), default=0) or _TYPICAL_CACHE


def vector_extension() -> str:
    """The widest usable vector extension, by its common name."""
    if settings.cpu_level:
        return _LEVELS[settings.cpu_level]
    facts = cpu_description()
    features = set((facts.get("flags") or facts.get("Features") or "").split())
    for feature, name in _VECTOR_FEATURES:
        if feature in features:
            return name
    return "NEON" if platform.machine() == "arm64" else "scalar"


def vector_registers() -> int:
    """Vector registers of a core: 16 of x86-64 without AVX-512, else 32."""
    return 16 if vector_extension() in ("AVX2", "SSE4.2") else 32


def vector_bytes() -> int:
    """Size of a vector register."""
    return {"AVX-512": 64, "AVX2": 32}.get(vector_extension(), 16)


def levels() -> list[str]:
    """The targets whose code this CPU can run, the fastest first."""
    machine = platform.machine().lower()
    if platform.system() != "Linux":
        return []
    if machine not in ("x86_64", "amd64"):
        return ["aarch64"] if machine in ("aarch64", "arm64") else []
    flags = set(cpu_description().get("flags", "").split())
    known = list(_LEVELS)
    highest = known.index(settings.cpu_level) + 1 if settings.cpu_level else len(known)
    usable = itertools.takewhile(
        lambda level: flags >= set(_FEATURES[level].split()), known[:highest]
    )
    return list(usable)[::-1]


def has_bfloat_dots() -> bool:
    """Whether an instruction of the target adds products of bfloats to floats."""
    return not settings.cpu_level and "avx512_bf16" in cpu_description().get("flags", "").split()


def host_target() -> Target:
    """The target of this CPU, or of the level in the settings."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    level = settings.cpu_level if x86 else ""
    # bfloat is rounded in integer code everywhere: the hardware's conversion flushes denormals.
    exact = () if level else ("-mno-avx512bf16",)
    if has_bfloat_dots():
        exact = (*exact, "-DMETALLOID_HAS_BFLOAT_DOTS")
    tune = (f"-march={level or 'native'}", *exact) if x86 else ("-mcpu=native",)
    facts = cpu_description()
    own = (facts.get(name, "") for name in ("model name", "flags", "Features"))
    identity = digest(level) if level else digest(*own)
    return cpu_target(
        "x86_64" if x86 else "aarch64", tune, vector_extension(),
        is_mac=platform.system() == "Darwin", identity=identity,
        prefetches_in_loops=bool(level) or facts.get("vendor_id") != _AMD,
        gathers=bool(level) or facts.get("vendor_id") != _AMD,
    )  # fmt: skip


def cpu_target(
    architecture: str,
    tune: Sequence[str],
    vectors: str,
    is_mac: bool = False,
    identity: str = "any",
    prefetches_in_loops: bool = True,
    gathers: bool = True,
) -> Target:
    """The target of a CPU.

    Parameters
    ----------
    architecture : str
        ``"x86_64"`` or ``"aarch64"``.
    tune : sequence of str
        clang's flags for the model or level.
    vectors : str
        Its widest vector extension, by the names of `vector_extension`.
    """
    # Kernels use no operating system. The Linux triple selects the calling convention; macOS needs
    # its own, for Mach-O files.
    triple = f"{architecture}-{'apple-macosx' if is_mac else 'unknown-linux-gnu'}"
    flags = ("-target", triple, *tune, "-fPIC", "-Xclang", "-ffake-address-space-map",
             "-fno-stack-protector")  # which clang puts in for macOS  # fmt: skip
    entry_header = Path(__file__).parent / "native" / "include" / "entries.h"
    return Target(
        architecture, flags, entry_header, identity, vectors, prefetches_in_loops, gathers
    )
