"""Kernels in OpenCL C or CUDA as Metal: a translation by text, for files of tests.

Functions other than kernels get a parameter with the positions of the thread, which
``get_local_id`` and ``threadIdx`` read. What has no counterpart in Metal raises `NotPortable`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_PRELUDE = """#include <metal_stdlib>
using namespace metal;
struct Ids { uint3 local, group, size, groups, whole; };
#define get_local_id(d) (ids_.local[d])
#define get_group_id(d) (ids_.group[d])
#define get_local_size(d) (ids_.size[d])
#define get_num_groups(d) (ids_.groups[d])
#define get_global_id(d) (ids_.group[d] * ids_.size[d] + ids_.local[d])
#define get_global_size(d) (ids_.whole[d])
#define get_global_offset(d) 0u
#define threadIdx ids_.local
#define blockIdx ids_.group
#define blockDim ids_.size
#define gridDim ids_.groups
#define FLAGS(f) mem_flags(((f) & 1 ? int(mem_flags::mem_threadgroup) : 0) | \\
                           ((f) & 2 ? int(mem_flags::mem_device) : 0))
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define barrier(f) threadgroup_barrier(FLAGS(f))
#define __syncthreads() barrier(3)
#define mul24(a, b) ((a) * (b))
#define __mul24(a, b) ((a) * (b))
#define __umul24(a, b) ((a) * (b))
#define mem_fence(f) ((void)0)
#define read_mem_fence(f) ((void)0)
#define write_mem_fence(f) ((void)0)
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)
#define ATOMIC(space, type, suffix, function) \\
    inline type function##suffix(space type* p, type v) \\
    { return atomic_##function##_explicit((space atomic_##type*)p, v, memory_order_relaxed); } \\
    inline type function##suffix(volatile space type* p, type v) \\
    { return function##suffix((space type*)p, v); }
#define ATOMICS(space, type) \\
    ATOMIC(space, type, _, fetch_add) ATOMIC(space, type, _, fetch_sub) \\
    ATOMIC(space, type, _, fetch_min) ATOMIC(space, type, _, fetch_max) \\
    ATOMIC(space, type, _, fetch_and) ATOMIC(space, type, _, fetch_or) \\
    ATOMIC(space, type, _, fetch_xor) ATOMIC(space, type, _, exchange) \\
    inline type cas_(volatile space type* p, type old, type v) { \\
        type before = old; \\
        while (!atomic_compare_exchange_weak_explicit((space atomic_##type*)p, &before, v, \\
               memory_order_relaxed, memory_order_relaxed) && before == old) {} \\
        return before; }
ATOMICS(device, int) ATOMICS(device, uint) ATOMICS(threadgroup, int) ATOMICS(threadgroup, uint)
"""
#: Annotations of GPUVerify that state what it is to prove.
_ANNOTATION = re.compile(
    r"\b__(?:\w*(?:invariant|requires|ensures|assert|assume)\w*|array_snapshot|spec_\w+)\b"
)
#: Names of atomic functions, of OpenCL and of CUDA.
_ATOMICS = {
    "add": "fetch_add_", "sub": "fetch_sub_", "min": "fetch_min_", "max": "fetch_max_",
    "and": "fetch_and_", "or": "fetch_or_", "xor": "fetch_xor_", "xchg": "exchange_",
    "cmpxchg": "cas_", "exch": "exchange_", "cas": "cas_",
}  # fmt: skip
#: What Metal does not have, and in which words the table says so.
_MISSING = (
    (r"async_work_group|wait_group_events|event_t", "asynchronous copies"),
    (r"\bimage\dd_t|sampler_t|read_image|texture<", "images"),
    (r"\bcurand", "CUDA's library of random numbers"),
    (r"DECLARE_UF|__axiom|bugle_|fresh_array|__spec_", "functions of the tool"),
    (r"\b(?:__builtin_)?mem(?:cpy|set)\b", "memcpy, memset"),
    (
        r"__(?:requires|assume)\s*\([^;]*(?:\[|get_local_id|get_global_id)",
        "preconditions of memory",
    ),
    (r"\bdouble\d*\b", "double"),
    (r"\b(?:\w+)(?:8|16)\s*\)\s*\(|\b(?:u?int|float|u?char|u?short)(?:8|16)\b", "wide vectors"),
    (r"\bcooperative_groups\b|this_grid|thread_block\b", "cooperative groups"),
    (r"\(\s*\*\s*\w+\s*\)\s*\(|typedef[^;]*\(\s*\*|funptr", "function pointers"),
    (r"^(?:static )?__(?:device|shared|constant)__[^();]*[;=]", "variables of the program"),
    (r"extern __shared__", "threadgroup memory without a size"),
    (r"\btemplate\s*<|\bclass\b|\bvirtual\b|__global__[^(]*<", "templates and classes"),
    (r"\bfrexp|vload|vstore|shuffle2?\(|convert_\w+_(?:sat|rt)", "functions of OpenCL"),
)  # fmt: skip
_REPLACEMENTS = (
    (r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n")),
    (r"//[^\n]*", ""),
    (r"^[ \t]*#\s*(?:include|pragma)[^\n]*", ""),
    (r"__attribute__\s*\(\((?!packed)(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)", ""),
    (r"\b__(?:restrict|inline__|forceinline__|noinline__|host__)\b|\brestrict\b", ""),
    (r"\b(?:__read_only|__write_only|extern \"C\")", ""),
    (r"\b__align__\s*\(([^()]*)\)", r"alignas(\1)"),
    (r"\b(?:__global__)\b", "__kernel"),
    (r"\bvoid\s+__kernel\b", "__kernel void"),
    (r"\b__device__\b", "inline"),
    (r"\b(?:__local|__shared__|local)\b", "threadgroup"),
    (r"\b(?:__global|global)\b", "device"),
    (r"\b(?:__constant|__constant__)\b", "constant"),
    (r"\b__private\b|\bprivate\b", "thread"),
    (r"\bsize_t\b", "uint"),
    (r"\bunsigned long long int\b|\bunsigned long long\b", "ulong"),
    (r"\(\s*((?:u?int|float|u?char|u?short|u?long)[234])\s*\)\s*\(", r"\1("),
    (r"\bconvert_(\w+)\(", r"\1("),
    (r"\b(add|sub)_sat\(", r"\1sat("),
    (r"\bpown\(", "pow("),
    (r"\batom(?:ic)?_inc\(([^()]*(?:\([^()]*\))?[^()]*)\)", r"fetch_add_(\1, 1)"),
    (r"\batom(?:ic)?_dec\(([^()]*(?:\([^()]*\))?[^()]*)\)", r"fetch_sub_(\1, 1)"),
    (r"\batom(?:ic)?_?([a-z]+)\(", lambda m: _ATOMICS.get(m[1], m[0][:-1]) + "("),
    (r"\batomic([A-Z][A-Za-z]+)\(", lambda m: _ATOMICS.get(m[1].lower(), m[0][:-1]) + "("),
)
_KERNEL = re.compile(r"(?:__kernel|\bkernel)\s+(?:\w+\s+)*?void\s+(?:\w+\s+)*?(\w+)\s*\(")
_FUNCTION = re.compile(r"(?<![\w#])([A-Za-z_][\w\s]*?[\w*\s]\s*\**)\b([A-Za-z_]\w*)\s*\(")
_IDS = (
    "uint3 local_ [[thread_position_in_threadgroup]]",
    "uint3 group_ [[threadgroup_position_in_grid]]", "uint3 size_ [[threads_per_threadgroup]]",
    "uint3 groups_ [[threadgroups_per_grid]]", "uint3 whole_ [[threads_per_grid]]",
)  # fmt: skip


class NotPortable(Exception):
    """A file needs what Metal does not have; the text says what."""


class Translated(NamedTuple):
    """A file in Metal.

    Attributes
    ----------
    text : str
    kernels : tuple of str
    """

    text: str
    kernels: tuple[str, ...]


def translated(source: str, is_cuda: bool) -> Translated:
    """The kernels of a file in Metal.

    Raises
    ------
    NotPortable
        If it needs what Metal does not have.
    """
    text = source.replace("\r", "")
    for pattern, replacement in _REPLACEMENTS[:3]:
        text = re.sub(pattern, replacement, text, flags=re.S if "*." in pattern else re.M)
    for pattern, what in _MISSING:
        if re.search(pattern, text, re.M):
            raise NotPortable(what)
    for pattern, replacement in _REPLACEMENTS[3:]:
        text = re.sub(pattern, replacement, text, flags=re.M)
    kernels = _KERNEL.findall(text)
    if not kernels:
        raise NotPortable("no kernel")
    annotations = sorted(set(_ANNOTATION.findall(text)))
    names = "".join(f"#define {name}(...) true\n" for name in annotations)
    return Translated(_PRELUDE + names + _with_ids(text, set(kernels), is_cuda), tuple(kernels))


def _with_ids(text: str, kernels: set[str], is_cuda: bool) -> str:
    """A text whose functions know the positions of the thread."""
    definitions = _definitions(text)
    functions = {name for name, *_ in definitions} - kernels
    parts, position = [], 0
    for name, first, opened, closed in definitions:
        parts.append(_with_calls(text[position:first], functions))
        position = closed + 1
        head, parameters = text[first:opened], _split(text[opened + 1 : closed])
        if name not in kernels:
            ids = ["thread const Ids& ids_", *parameters]
            parts.append(f"{head}({', '.join(ids)})")
            continue
        rest = text[position:]
        brace = re.match(r"\s*(\{|;)", rest)
        if brace is None or brace[1] == ";":  # a prototype
            parts.append("" if brace else head)
            position += brace.end() if brace else 0
            continue
        position += brace.end()
        own, locals_ = _kernel_parameters(parameters, is_cuda)
        parts.append(
            f"kernel void {name}({', '.join([*own, *_IDS])}) {{ "
            f"const Ids ids_ = {{local_, group_, size_, groups_, whole_}}; {' '.join(locals_)}"
        )
        end = _closing(text, position - 1, "{}")
        body = re.sub(r"\b__(?:requires|assume)\s*\(", "REQUIRES(", text[position:end])
        parts.append(_with_calls(body, functions))
        position = end
    parts.append(_with_calls(text[position:], functions))
    return "#define REQUIRES(...) if (!(__VA_ARGS__)) return\n" + "".join(parts)


def _kernel_parameters(parameters: list[str], is_cuda: bool) -> tuple[list[str], list[str]]:
    """Parameters of a kernel in Metal, and declarations of those that it may assign to."""
    own, locals_, memories = [], [], 0
    for parameter in parameters:
        parameter = re.sub(r"(\w+)\s*\[[^\]]*\]$", r"* \1", parameter)
        if "*" in parameter:
            if is_cuda and not re.match(r"\s*(?:const\s+)?(?:device|constant)\b", parameter):
                parameter = f"device {parameter}"
            if re.search(r"\bthreadgroup\b", parameter):
                parameter += f" [[threadgroup({memories})]]"
                memories += 1
            own.append(parameter)
            continue
        match = re.fullmatch(r"\s*(?:const\s+)?(.*?)(\w+)\s*", parameter, re.S)
        if match is None or not match[1].strip():
            raise NotPortable("parameters without names")
        own.append(f"constant {match[1]}& {match[2]}_given")
        locals_.append(f"{match[1]} {match[2]} = {match[2]}_given;")
    return own, locals_


def _definitions(text: str) -> list[tuple[str, int, int, int]]:
    """Functions outside of braces: name, start, and where their parameters begin and end."""
    definitions, position = [], 0
    depths = _depths(text)
    while match := _FUNCTION.search(text, position):
        opened = match.end() - 1
        position = match.end()
        line = text[text.rfind("\n", 0, match.start(2)) + 1 : match.start(2)]
        if depths[match.start(2)] or line.lstrip().startswith("#"):
            continue
        closed = _closing(text, opened, "()")
        if re.match(r"\s*[{;]", text[closed + 1 :]) and match[1].strip() not in ("", "return"):
            definitions.append((match[2], match.start(), opened, closed))
            position = closed
    return definitions


def _depths(text: str) -> list[int]:
    depth, depths = 0, []
    for character in text:
        depth -= character == "}"
        depths.append(depth)
        depth += character == "{"
    return depths


def _closing(text: str, opened: int, pair: str) -> int:
    """Where what opens at a position is closed."""
    depth = 0
    for position in range(opened, len(text)):
        depth += (text[position] == pair[0]) - (text[position] == pair[1])
        if depth == 0:
            return position
    raise NotPortable("parentheses that do not match")


def _split(parameters: str) -> list[str]:
    """Parameters, which commas separate."""
    parts = [part.strip() for part in parameters.split(",")]
    return [part for part in parts if part not in ("", "void")]


def _with_calls(text: str, functions: set[str]) -> str:
    """A text whose calls of functions pass the positions on."""
    if not functions:
        return text
    names = "|".join(map(re.escape, sorted(functions)))
    text = re.sub(rf"(?<![\w.>])({names})\s*\(\s*\)", r"\1(ids_)", text)
    return re.sub(rf"(?<![\w.>])({names})\s*\((?!ids_)", r"\1(ids_, ", text)
