"""OpenCL's platforms and their devices, and why some are not used."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path
from typing import Any

from metalloid.errors import DeviceUnavailable

#: The loader looks for platforms in this folder, or in what this variable names.
_VENDORS, _VARIABLE = Path("/etc/OpenCL/vendors"), "OCL_ICD_VENDORS"
#: Intel's runtime for CPUs, as the package ``intel-opencl-rt`` installs it.
_INTEL = Path(sys.prefix, "lib", "libintelocl.so")
#: Without it, code that Intel's runtime for CPUs does not optimise has no subgroups, in silence.
_VECTORIZES = "CL_CONFIG_CPU_O0_VECTORIZATION"
_EXTENSIONS = (
    "cl_khr_fp16",
    "cl_khr_subgroup_ballot",
    "cl_khr_subgroup_shuffle",
)
_REQUIRED_SIZES = "cl_intel_required_subgroup_size"
#: Threads of a subgroup, which holds simdgroups of 32.
_SUBGROUPS = [32, 64, 128]
#: The variable with a size of subgroups, for tests of those that the devices at hand do not need.
_FORCED = "METALLOID_OPENCL_SUBGROUP"


@functools.cache
def binding() -> Any:
    """The module ``pyopencl``.

    Raises
    ------
    DeviceUnavailable
        If it is not installed.
    """
    if _VARIABLE not in os.environ and not any(_VENDORS.glob("*.icd")) and _INTEL.exists():
        os.environ[_VARIABLE] = str(_INTEL)  # the loader knows system-wide platforms only
    os.environ.setdefault("PYOPENCL_NO_CACHE", "1")  # we have our own
    if not _has_loaded_intel():
        os.environ[_VECTORIZES] = "True"
    try:
        import pyopencl
    except ImportError:
        raise DeviceUnavailable(
            "[opencl] the package 'pyopencl' is not installed. Run: pip install metalloid[opencl]"
        ) from None
    return pyopencl


def _has_loaded_intel() -> bool:
    try:
        return _INTEL.name in Path("/proc/self/maps").read_text()
    except OSError:
        return True


def compiles_without_optimizing(device: Any) -> bool:
    """Whether a device is a CPU of Intel's runtime that keeps subgroups without optimisations."""
    is_cpu = bool(device.type & binding().device_type.CPU)
    return is_cpu and "Intel" in device.platform.vendor and os.environ.get(_VECTORIZES) == "True"


@functools.cache
def functions() -> ctypes.CDLL:
    """OpenCL's own functions, of the library that the binding uses."""
    return ctypes.CDLL(binding()._cl.__file__)


@functools.cache
def usable_devices() -> tuple[Any, ...]:
    """The devices that can run kernels, of all platforms.

    Raises
    ------
    DeviceUnavailable
        If there are none, with the reason for each.
    """
    reasons, usable = [], []
    for device in _devices():
        missing = lacking(device)
        if missing:
            reasons.append(f"{device.name.strip()} lacks {', '.join(missing)}")
        else:
            usable.append(device)
    if not usable:
        raise DeviceUnavailable(
            f"[opencl] no device can run kernels: {'; '.join(reasons)}."
            if reasons
            else "[opencl] there is no OpenCL platform. Install the driver of a GPU, or Intel's "
            "runtime for CPUs: pip install intel-opencl-rt intel-cmplr-lib-rt"
        )
    return tuple(usable)


def _devices() -> list[Any]:
    cl = binding()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # if there are none
        return []
    return [device for platform in platforms for device in _devices_of(platform)]


def _devices_of(platform: Any) -> list[Any]:
    try:
        return list(platform.get_devices())
    except binding().Error:
        return []


@functools.cache
def subgroup_size(device: Any) -> int:
    """Threads of the subgroups that hold simdgroups: the fewest possible, or 0 if there are none.

    `_FORCED` chooses others, for tests.
    """
    sizes, forced = _subgroup_sizes(device), os.environ.get(_FORCED)
    chosen = [size for size in _SUBGROUPS if not forced or forced == str(size)]
    return next((size for size in chosen if size in sizes), 0)


def _subgroup_sizes(device: Any) -> list[int]:
    """The sizes that a kernel may require (clGetDeviceInfo, CL_DEVICE_SUB_GROUP_SIZES_INTEL)."""
    if _REQUIRED_SIZES not in device.extensions.split():
        return []
    sizes, written = (ctypes.c_size_t * 16)(), ctypes.c_size_t()
    status = functions().clGetDeviceInfo(
        ctypes.c_void_p(device.int_ptr), 0x4108, ctypes.sizeof(sizes), sizes, ctypes.byref(written)
    )
    return [] if status else sizes[: written.value // ctypes.sizeof(ctypes.c_size_t)]


def lacking(device: Any) -> list[str]:
    """Names of the features that a device lacks to run kernels."""
    missing = []
    if "SPIR-V" not in _info(device, "il_version", ""):
        missing.append("SPIR-V (cl_khr_il_program)")
    if not _info(device, "svm_capabilities", 0):
        missing.append("shared virtual memory")
    if not subgroup_size(device):
        sizes = " or ".join(map(str, _SUBGROUPS))
        missing.append(f"subgroups of {sizes} ({_REQUIRED_SIZES})")
    extensions = device.extensions.split()
    return missing + [name for name in _EXTENSIONS if name not in extensions]


def _info(device: Any, name: str, default: Any) -> Any:
    """A property of a device, or `default` if its version of OpenCL has none of the name."""
    try:
        return getattr(device, name)
    except (AttributeError, binding().Error):
        return default
