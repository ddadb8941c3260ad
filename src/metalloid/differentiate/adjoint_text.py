"""The MSL text of an adjoint, and of the kernel that counts its tape."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from metalloid.differentiate.derived import (
    as_constant,
    kernel_text,
    memory_type,
    threadgroup_parameters,
)
from metalloid.differentiate.matrices import matrix_functions
from metalloid.differentiate.program.text import count_name
from metalloid.differentiate.program.tree import Parameter
from metalloid.differentiate.sweep import Sweep
from metalloid.differentiate.textures import sampler_lines, sampler_parameters, texture_functions

_THREAD = (
    "  const ulong tape_threads = ulong(tape_grid.x) * tape_grid.y * tape_grid.z;\n"
    "  const ulong tape_row = ulong(tape_position.z) * tape_grid.y + tape_position.y;\n"
    "  const ulong tape_thread = tape_row * tape_grid.x + tape_position.x;\n"
)
_IDS = (
    "uint3 tape_position [[thread_position_in_grid]]",
    "uint3 tape_grid [[threads_per_grid]]",
)
_THREADGROUP_IDS = (
    "uint3 adjoint_position [[thread_position_in_threadgroup]]",
    "uint3 adjoint_extents [[threads_per_threadgroup]]",
)
_SHARED_ADD = """\
// Adds to an adjoint in threadgroup memory, where MSL has no atomic additions of floats.
static void adjoint_add(threadgroup atomic_uint *address, float value) {
  uint bits = atomic_load_explicit(address, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(
      address, &bits, as_type<uint>(as_type<float>(bits) + value), memory_order_relaxed,
      memory_order_relaxed)) {
  }
}

"""
_IS_COMMON = """\
// Whether the threads of a simdgroup that run have the same index.
static bool adjoint_is_common(uint index) {
  return simd_all(index == simd_broadcast_first(index));
}

static bool adjoint_is_common(ulong index) {
  return adjoint_is_common(uint(index)) && adjoint_is_common(uint(index >> 32));
}

"""
_WORDS = re.compile(r"(?<![\w.])[A-Za-z_]\w*")  # but for components


def adjoint_text(sweep: Sweep, name: str, is_for_gpu: bool) -> str:
    """The text of the adjoint and of the kernel that counts its tape."""
    program, wrt, outputs = sweep.program, sweep.wrt, sweep.outputs
    sweep.write()
    types = {parameter.name: parameter.type for parameter in program.parameters}
    names = {n: f"{sweep.prefix}{n}" for n in (*outputs, *wrt)}
    adjoints = [
        f"device {'' if n in sweep.consumed else 'const '}{memory_type(types[n])} *{names[n]}"
        for n in outputs
    ]
    for n in wrt:
        word = "float" if n in sweep.owned or n in sweep.stored else "atomic_float"
        is_element = types[n].is_aggregate and types[n].texture is None
        element = memory_type(types[n]) if is_element else word
        adjoints.append(f"device {element} *{names[n]}")
    lines = sweep.lines
    declared = [*sampler_lines(program, sweep.samplers), *sweep.declared]
    settings = sampler_parameters(program, sweep.samplers)
    extra = [*adjoints, *(f"constant adjoint_sampler &{name}" for name in settings)]
    extra += [f"constant uint &{count_name(p.name)}" for p in program.threadgroup_parameters]
    extra += threadgroup_parameters(program, sweep.active, sweep.prefix, "atomic_uint")
    if sweep.has_tape:
        extra += ["device uint *tape", "constant uint &tape_stride", *_IDS]
        declared = ["uint top = 0;", *declared]
    if sweep.uses_lanes:
        extra.append("uint adjoint_lane [[thread_index_in_simdgroup]]")
    if sweep.shared_words or sweep.shared:
        extra += _THREADGROUP_IDS
        declared = [*declared, *_cleared(sweep)]
    text = texture_functions(program) + matrix_functions(program)
    text += _SHARED_ADD if sweep.shared_words else ""
    text += _IS_COMMON if sweep.asks_simdgroups else ""
    does = [
        f"{verb} {', '.join(names[n] for n in chosen)}"
        for verb, chosen in (
            ("stores", [n for n in wrt if n in sweep.stored]),
            ("adds to", [n for n in wrt if n not in sweep.stored]),
        )
        if chosen
    ]
    parameters = program.parameters
    if is_for_gpu and not any("simdgroup_load" in line for line in lines):
        # Compilers need not load them again after each addition to an adjoint.
        parameters = [as_constant(parameter) for parameter in parameters]
    text += kernel_text(f"{name}_vjp", parameters, extra, declared, lines,
                   _THREAD if sweep.has_tape else "",
                   f"The adjoint of {name}: {', '.join(does)}.")  # fmt: skip
    if sweep.has_tape:
        counting = Sweep(program, wrt, outputs)
        counting.write_count()
        words = {word for line in counting.lines for word in _WORDS.findall(line)}
        sweep.counted = {
            p.name for p in program.parameters if p.name in words and not _is_position(p)
        }
        ends = ["atomic_fetch_max_explicit(tape_words, peak, memory_order_relaxed);"]
        text += "\n" + kernel_text(
            f"{name}_tape", program.parameters,
            ["device atomic_uint *tape_words", "constant uint &tape_stride"],
            [*sampler_lines(program, {}), *counting.declared], [*counting.lines, *ends], "",
            "Words of the tape of a thread.",
        )  # fmt: skip
    return text


def _is_position(parameter: Parameter) -> bool:
    """Whether it says where a thread is, which follows from the sizes of a launch."""
    return bool(parameter.attributes) and not parameter.type.space and not parameter.type.is_handle


def _cleared(sweep: Sweep) -> Iterator[str]:
    """Lines that set threadgroup memory to 0."""
    yield "const uint adjoint_row = adjoint_position.z * adjoint_extents.y + adjoint_position.y;"
    yield "const uint adjoint_first = adjoint_row * adjoint_extents.x + adjoint_position.x;"
    yield "const uint adjoint_step = adjoint_extents.x * adjoint_extents.y * adjoint_extents.z;"
    for name, type_ in sweep.shared.items():
        index, stride = "[i]" if type_.is_pointer else "", math.prod(type_.extents)
        elements = count_name(name) if type_.is_pointer else str(stride)
        for extent in type_.extents:
            stride //= extent
            index += f"[i / {stride} % {extent}]" if len(type_.extents) > 1 else "[i]"
        yield f"for (uint i = adjoint_first; i < {elements}; i += adjoint_step) {{"
        yield f"  {name}{index} = {type_.element.msl}(0);"
        yield "}"
    for name, count in sweep.shared_words.items():
        yield f"for (uint i = adjoint_first; i < {count}; i += adjoint_step) {{"
        yield f"  atomic_store_explicit(&{sweep.prefix}{name}[i], 0u, memory_order_relaxed);"
        yield "}"
    yield "threadgroup_barrier(mem_flags::mem_threadgroup);"
