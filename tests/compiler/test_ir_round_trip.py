"""Parser and printer give back what clang emits for NVIDIA GPUs: the PTX stays the same."""

import re
from pathlib import Path

import pytest

import metalloid as mtl
from metalloid.backends.cuda.compile.target import cuda_target
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.name_values import name_values
from metalloid.compiler.ir.parser import parse_function, replace_function
from metalloid.compiler.ir.printer import instruction_text
from metalloid.compiler.ir.types import I32, Pointer, Struct
from metalloid.compiler.ir.verifier import verify
from metalloid.compiler.toolchain import clang

TO_PTX = ["clang", "-x", "ir", *cuda_target("sm_90").flags, "-O3", "-w", "-S", "-o", "-", "-"]
HEAD = 'target triple = "nvptx64-nvidia-cuda"\n'

#: Much that is rare in kernels.
RARE = r"""
%struct.S = type { i32, [2 x float], ptr addrspace(3) }
%struct.pair = type { float, float }
@table = internal addrspace(3) global [64 x i32] zeroinitializer, align 16

declare void @llvm.assume(i1)
declare %struct.pair @other(ptr addrspace(1) noundef, i32) #1
declare i32 @llvm.nvvm.activemask()

define internal noundef %struct.pair @callee(i32 noundef range(i32 0, 9) %n) unnamed_addr #0 {
  %1 = sitofp i32 %n to float
  %2 = insertvalue %struct.pair poison, float %1, 0
  ret %struct.pair %2
}

define dso_local ptx_kernel void @k(ptr noundef byval(%struct.S) align 8 captures(none) %0, ptr addrspace(1) %p) local_unnamed_addr #0 {
  %2 = alloca [4 x %struct.S], align 16
  %3 = load volatile i32, ptr %0, align 8, !range !0
  %4 = alloca i32, i32 %3, align 8
  %5 = atomicrmw volatile add ptr addrspace(1) %p, i32 %3 syncscope("agent") monotonic, align 4
  %6 = load atomic volatile i32, ptr addrspace(1) %p monotonic, align 4
  %7 = cmpxchg weak volatile ptr addrspace(1) %p, i32 %5, i32 7 acquire monotonic, align 4
  %8 = extractvalue { i32, i1 } %7, 1
  fence syncscope("block") seq_cst
  %9 = call noundef { i32, i32 } asm sideeffect "{ .reg .pred p; mov.u32 $0, $2; mov.u32 $1, %laneid; }", "=r,=r,r,~{memory}"(i32 %6) #2, !srcloc !1
  %10 = extractvalue { i32, i32 } %9, 1
  call void @llvm.assume(i1 %8)
  call void @llvm.assume(i1 true) [ "align"(ptr addrspace(1) %p, i64 16) ]
  %11 = call noundef %struct.pair @other(ptr addrspace(1) noundef align 4 dereferenceable(4) %p, i32 %10) #1
  %12 = extractvalue %struct.pair %11, 0
  %13 = load ptr, ptr %4, align 8
  %14 = call nnan contract nofpclass(nan) float %13(float noundef %12, i32 3)
  %15 = fadd nnan nsz float %14, %12
  %16 = getelementptr inbounds nuw %struct.S, ptr %2, i64 1, i32 1, i64 0
  store float %15, ptr %16, align 4
  %17 = load i32, ptr addrspace(3) getelementptr inbounds nuw (i8, ptr addrspace(3) @table, i64 8), align 8
  store volatile i32 %17, ptr addrspacecast (ptr addrspace(3) @table to ptr), align 16
  %18 = insertelement <2 x ptr> poison, ptr %2, i64 0
  %19 = getelementptr float, <2 x ptr> %18, <2 x i64> <i64 1, i64 poison>
  %20 = extractelement <2 x ptr> %19, i32 0
  %21 = tail call %struct.pair @callee(i32 %17)
  %22 = extractvalue %struct.pair %21, 1
  store float %22, ptr %20, align 4
  store [3 x i8] c"ab\00", ptr %20, align 4
  switch i32 %17, label %24 [
    i32 -1, label %23
    i32 5, label %23
  ], !prof !2

23:                                               ; preds = %1, %1
  br i1 %8, label %23, label %24, !llvm.loop !3

24:                                               ; preds = %23, %1
  %25 = phi <2 x half> [ splat (half 0xH3C00), %1 ], [ <half 0xH0000, half undef>, %23 ]
  %26 = addrspacecast ptr addrspace(1) %p to ptr
  store <2 x half> %25, ptr %26, align 4
  ret void
}

attributes #0 = { nounwind }
attributes #1 = { convergent nounwind }
attributes #2 = { nounwind }
!0 = !{i32 0, i32 100}
!1 = !{i32 5}
!2 = !{!"branch_weights", i32 1, i32 2, i32 3}
!3 = distinct !{!3}
"""


def ptx(ir):
    result = clang.run(TO_PTX, ir)
    assert result.status == 0, result.messages
    return re.sub(r"\s*//.*", "", result.output.decode())  # names of blocks are comments


def round_trip(ir, *names):
    """The module with the text of functions as our printer writes it."""
    for name in names:
        function = parse_function(ir, name, retain_hints=True)
        verify(function)
        ir = replace_function(ir, function)
    return ir


def test_rare_constructs_are_printed_as_they_were_parsed():
    reprinted = round_trip(HEAD + RARE, "callee", "k")
    assert ptx(reprinted) == ptx(HEAD + RARE)
    once = parse_function(reprinted, "k", retain_hints=True)
    twice = parse_function(round_trip(reprinted, "k"), "k", retain_hints=True)
    assert [*map(instruction_text, once.instructions())] == [
        *map(instruction_text, twice.instructions())
    ]


def test_hints_that_the_vectorizer_ignores_are_retained_if_asked():
    function = parse_function(RARE, "k", retain_hints=True)
    body = {i.result: i for i in function.entry.body}
    assert function.parameters[1].type == Pointer(1)
    assert function.qualifiers == ("dso_local", "ptx_kernel")
    assert body["%3"].metadata == (("!range", "!0"),)
    assert body["%6"].flags == ("volatile",)
    assert body["%5"].ordering == 'syncscope("agent") monotonic'
    assert body["%9"].callee.startswith("asm sideeffect")
    assert body["%11"].attributes.arguments == (
        ("noundef", "align", "4", "dereferenceable", "(", "4", ")"), (),
    )  # fmt: skip
    assert (body["%14"].callee, body["%14"].operands[0].name) == ("", "%13")
    assert (str(body["%16"].source), body["%16"].source.members[0]) == ("%struct.S", I32)
    assert isinstance(body["%9"].type, Struct)
    assert function.entry.end.metadata == (("!prof", "!2"),)


@pytest.fixture(scope="module")
def modules():
    """LLVM IR of some kernels of the benchmarks."""
    path = Path(mtl.__file__).parent / "bench" / "kernels.metal"
    library = mtl.library(path=path, target="cuda:sm_90")
    return {name: library.function(name).asm["ll"] for name in [*library][::3]}


def test_ptx_of_kernels_stays_the_same(modules):
    for name, ir in modules.items():
        functions = re.findall(r"^define [^\n]*?@([\w.$]+)\(", ir, re.M)
        assert ptx(round_trip(ir, *functions)) == ptx(ir), name


def test_named_values_may_stand_in_any_order(modules):
    ir = next(iter(modules.values()))
    function = parse_function(ir, "mtl_kernel", retain_hints=True)
    name_values(function, FreshNames(function))
    verify(function)
    assert not any(re.match(r"%\d+$", i.result) for i in function.instructions())
    assert not any(re.match(r"%\d+$", name) for name in function.blocks)
    assert ptx(replace_function(ir, function)) == ptx(ir)


def test_a_label_that_begins_with_switch():
    """LLVM gives such a name to a block between a switch and a phi."""
    ir = """define void @f(i32 %n, ptr %to) {
entry:
  switch i32 %n, label %switch.edge [
    i32 1, label %other
  ]

switch.edge:
  br label %other

other:
  %x = phi i32 [ 1, %entry ], [ 2, %switch.edge ]
  store i32 %x, ptr %to, align 4
  ret void
}
"""
    function = parse_function(ir, "f")
    successors = {name: tuple(block.successors) for name, block in function.blocks.items()}
    assert successors == {
        "%entry": ("%switch.edge", "%other"), "%switch.edge": ("%other",), "%other": (),
    }  # fmt: skip


def test_fresh_names_of_numbered_values_are_names():
    text = "define i32 @f(i32 %x) {\n  %1 = add i32 %x, 1\n  ret i32 %1\n}\n"
    names = FreshNames(parse_function(text, "f", retain_hints=True))
    assert [names("%1.x"), names("%1.x"), names("%x"), names("%x.y")] == [
        "%mtl.1.x", "%mtl.1.x.1", "%x.1", "%x.y",
    ]  # fmt: skip
