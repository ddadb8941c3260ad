"""Changes to clang's IR for the CPU's memory model and Metal's shifts."""

import pytest

from metalloid.backends.cpu.compile.memory_model import (
    assume_scalar_alignment,
    forget_private_volatile,
    mark_constant_loads,
    narrow_threadgroup_atomics,
)
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.parser import map_functions
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.transforms.assertions import declare_reports, pass_thread_index
from metalloid.compiler.transforms.shift_amounts import mask_shift_amounts

MODULE = """%struct.S = type {{ i32, float }}
@table = addrspace(1) constant [2 x i32] [i32 1, i32 2]

define dso_local void @f(ptr noundef %p, ptr addrspace(1) %c, ptr addrspace(3) %t, i32 %n) #0 {{
entry:
  {}
  ret void
}}

attributes #0 = {{ nounwind }}
"""


def masked(function):
    mask_shift_amounts(function, FreshNames(function))


def edited(edit, line):
    """The lines that an edit leaves of a function with one line; the rest must stay as it is."""
    before, after = MODULE.format("@").split("@\n")[0], MODULE.format(line)
    text = map_functions(after, edit)
    assert text.startswith(before)
    assert text.endswith("\n  ret void\n}\n\nattributes #0 = { nounwind }\n")
    return [each.strip() for each in text[len(before) : text.index("ret void")].splitlines()][:-1]


@pytest.mark.parametrize(
    ("edit", "line", "expected"),
    [
        (mark_constant_loads, "%x = load i32, ptr addrspace(1) %c, align 4, !tbaa !5",
         "%x = load i32, ptr addrspace(1) %c, align 4, !invariant.load !{}, !tbaa !5"),
        (mark_constant_loads, "%x = load %struct.S, ptr %p, align 4", None),
        (mark_constant_loads, "store i32 1, ptr addrspace(1) %c, align 4", None),
        (assume_scalar_alignment, "%x = load <4 x float>, ptr %p, align 16",
         "%x = load <4 x float>, ptr %p, align 4"),
        (assume_scalar_alignment, "store <4 x i64> zeroinitializer, ptr %p, align 32",
         "store <4 x i64> zeroinitializer, ptr %p, align 8"),
        (assume_scalar_alignment, "%x = load i8, ptr %p, align 4", "%x = load i8, ptr %p, align 1"),
        (assume_scalar_alignment, "%x = load ptr, ptr %p, align 16", "%x = load ptr, ptr %p, align 8"),
        (assume_scalar_alignment, "%x = load atomic i64, ptr %p monotonic, align 8", None),
        (assume_scalar_alignment,
         "call void @llvm.memcpy.p0.p1.i64(ptr noundef align 16 %p, ptr addrspace(1) align 4 %c, i64 9, i1 false)",
         "call void @llvm.memcpy.p0.p1.i64(ptr noundef align 1 %p, ptr addrspace(1) align 1 %c, i64 9, i1 false)"),
        (forget_private_volatile, "%a = alloca i32, align 4; %x = load volatile i32, ptr %a, align 4",
         "%a = alloca i32, align 4; %x = load i32, ptr %a, align 4"),
        (forget_private_volatile, "store volatile i32 1, ptr %p, align 4", None),
        (narrow_threadgroup_atomics, "%x = atomicrmw add ptr addrspace(3) %t, i32 1 monotonic, align 4",
         '%x = atomicrmw add ptr addrspace(3) %t, i32 1 syncscope("singlethread") monotonic, align 4'),
        (narrow_threadgroup_atomics, "store atomic i32 1, ptr addrspace(3) %t release, align 4",
         'store atomic i32 1, ptr addrspace(3) %t syncscope("singlethread") release, align 4'),
        (narrow_threadgroup_atomics, "%x = atomicrmw add ptr %p, i32 1 monotonic, align 4", None),
        (narrow_threadgroup_atomics, "fence seq_cst", None),
        (masked, "%x = shl nuw nsw i32 1, %n", "%mtl.amount = and i32 %n, 31; %x = shl i32 1, %mtl.amount"),
        (masked, "%x = lshr exact i32 %n, 4", None),
        (masked, "%x = shl <2 x i32> zeroinitializer, zeroinitializer", None),
        (lambda function: pass_thread_index(function, function.parameters[3]),
         "call void @__msl_assertion_failed(ptr noundef %p, ptr %p, i32 noundef 7) #1",
         "call void @__msl_assertion_failed_in_thread(ptr noundef %p, ptr %p, i32 noundef 7, i32 %n) #1"),
    ],
)  # fmt: skip
def test_what_changes(edit, line, expected):
    lines = "\n  ".join(line.split("; "))
    assert edited(edit, lines) == (expected or line).split("; ")


def test_reports_are_declared_once_they_are_called():
    assert declare_reports("").strip() == ""
    declared = declare_reports("call void @__msl_log_in_thread(i32 0)")
    assert declared.count("\ndeclare void @__msl_log_in_thread(") == 1
    assert "assertion" not in declared


def test_what_the_parser_does_not_know_is_refused():
    with pytest.raises(Unsupported, match="the instruction landingpad"):
        map_functions(MODULE.format("%x = landingpad { ptr, i32 } cleanup"), masked)
