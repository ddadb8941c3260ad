"""Reports of the sanitizer's runtime (sanitizer.h), and how to repair what they are about."""

from __future__ import annotations

import ctypes

from metalloid.runtime.launch.findings import (
    CONVERSION,
    INACTIVE_LANE,
    NAN,
    SHIFT,
    TEXEL,
    UNINITIALISED,
    Participant,
)

READ, WRITE, ATOMIC = 1, 2, 4  # sanitizer.h
DEVICE = 0  # Report.space
_SIMD_WIDTH = 32


class Access(ctypes.Structure):
    """An access (sanitizer.h, mtl_access)."""

    _fields_ = (
        ("group", ctypes.c_uint32),
        ("thread", ctypes.c_uint16),
        ("site", ctypes.c_uint16),
        ("epoch", ctypes.c_uint32),
        ("simd_epoch", ctypes.c_uint32),
        ("barriers", ctypes.c_uint32),
        ("simd_barriers", ctypes.c_uint32),
    )


class Report(ctypes.Structure):
    """A report (sanitizer.h, mtl_report)."""

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("space", ctypes.c_uint32),
        ("bytes", ctypes.c_uint32),
        ("address", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("accesses", Access * 2),
        ("kinds", ctypes.c_uint32 * 2),
        ("values", (ctypes.c_uint8 * 16) * 2),
    )


HINTS = {
    UNINITIALISED: "Threadgroup memory has no value at first: write the element before it is read, "
    "in each threadgroup.",
    INACTIVE_LANE: "The value of a lane that has ended, took another branch or does not exist is "
    "undefined. Let all lanes of the simdgroup call the function, or select another lane.",
    CONVERSION: "The result is undefined. Clamp the number first, and treat NaN.",
    SHIFT: "MSL takes the low bits of the amount only. Compare it with the width first, or write "
    "the mask if that is meant.",
    TEXEL: "Such a read gives black, and such a write does nothing. Compare the position with "
    "get_width() and get_height() first, unless that is meant.",
    NAN: "0 / 0, inf - inf, 0 * inf, and functions outside of their domain have no value: treat "
    "such numbers before.",
}


BUFFER_HINT = (
    "Nothing has written the element: fill the buffer first, or let the kernel write each element "
    "before it reads it. If zeros are meant, say so: mtl.Buffer(numpy.zeros(...)), or init_value=0 "
    "for an output of a metal_kernel."
)


VARIABLE_HINT = "Variables have no value at first: give it one before it is read, on all paths."


ALIGNMENT_HINT = (
    "Its offset must be a multiple of {} bytes. Use a packed type, such as packed_float4, whose "
    "alignment is that of its elements, or another index."
)


def race_hint(report: Report, accesses: tuple[Participant, ...]) -> str:
    """The barrier that is missing."""
    first, second = report.accesses
    kinds = report.kinds
    space, flag = ("device", "mem_device") if report.space == DEVICE else (
        "threadgroup", "mem_threadgroup"
    )  # fmt: skip
    if (kinds[0] ^ kinds[1]) & ATOMIC:
        other = "Let both be atomic"
        if first.group == second.group:
            return f"{other}, or put threadgroup_barrier(mem_flags::{flag}) between them."
        return f"{other}: threadgroups run in any order."
    if accesses[0].earlier_launch:
        return (
            "Nothing orders the two launches: put a memory barrier between them in the encoder, or "
            "let one wait for the other."
        )
    if first.group != second.group:
        return (
            "No barrier orders threadgroups: use atomics, let each threadgroup write elements of "
            "its own, or use a second launch."
        )
    barrier = f"threadgroup_barrier(mem_flags::{flag})"
    if first.barriers != second.barriers:
        return (
            f"The threadgroup_barrier between them does not order {space} memory: "
            f"let its flags include mem_flags::{flag}."
        )
    same_simdgroup = first.thread // _SIMD_WIDTH == second.thread // _SIMD_WIDTH
    if first.simd_barriers != second.simd_barriers:
        if not same_simdgroup:
            return f"A simdgroup_barrier orders the threads of one simdgroup only: use {barrier}."
        return (
            f"The simdgroup_barrier between them does not order {space} memory: "
            f"let its flags include mem_flags::{flag}."
        )
    where = "between the two lines, where all threads reach it"
    if accesses[0].line == accesses[1].line:
        if kinds[0] == kinds[1]:
            return "Let one thread of the threadgroup write it, or use an atomic function."
        if report.space == DEVICE:
            return f"Use an atomic function, or put {barrier} between the read and the write."
        where = "between the read and the write"
    if same_simdgroup:
        where += "; a simdgroup_barrier suffices if no other simdgroup uses the memory"
    return f"Put {barrier} {where}."
