"""The passes over kernels for NVIDIA GPUs, each on a small function, and their pipeline."""

import re
from types import SimpleNamespace

import pytest

import metalloid as mtl
from metalloid.backends.cuda.compile.coarsening import assume_uniform_grid, coarsen_threads
from metalloid.backends.cuda.compile.full_warp_loops import version_full_warp_loops
from metalloid.backends.cuda.compile.launch_data import constant_pointers
from metalloid.backends.cuda.compile.member_masks import materialize_member_masks
from metalloid.backends.cuda.compile.module_edits import declare_intrinsics, prepare_module
from metalloid.backends.cuda.compile.pipeline import COARSENING, KERNEL
from metalloid.backends.cuda.compile.tensor_cores import use_tensor_cores
from metalloid.backends.cuda.compile.warp_divergence import NO_DIVERGENCE, analyse_warp
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.ir.printer import function_text, instruction_text
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.ir.verifier import verify
from metalloid.compiler.transforms.invariant_loads import mark_invariant_loads
from metalloid.compiler.transforms.name_values import name_values

LANE = "%lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"
ACTIVE = "call i32 @llvm.nvvm.activemask()"


def kernel(blocks):
    """A kernel; each block as ``name: instruction; instruction``."""
    lines = []
    for block in filter(None, map(str.strip, blocks.strip().splitlines())):
        name, body = block.split(":", 1)
        lines += [f"{name}:", *(f"  {line.strip()}" for line in body.split(";"))]
    text = "\n".join(["define ptx_kernel void @mtl_kernel(ptr %launch) {", *lines, "}", ""])
    return parse_function(text, "mtl_kernel", retain_hints=True)


def signature(*constant, sources=4):
    """A kernel's parameters, of which those in `constant` are in that address space."""
    buffers = [
        SimpleNamespace(position=n, layout=SimpleNamespace(space="constant")) for n in constant
    ]
    return SimpleNamespace(buffers=buffers, sources=[None] * sources)


def lines(function, block=None):
    """Instructions as text."""
    found = function.instructions() if block is None else function.blocks[block].instructions()
    return [*map(instruction_text, found)]


# ---- names


def test_fresh_names_are_those_that_nothing_has():
    names = FreshNames(kernel(f"entry: {LANE}; ret void"))
    assert [names("%lane"), names("%lane"), names("%entry"), names("%launch"), names("%x")] == [
        "%lane.1", "%lane.2", "%entry.1", "%launch.1", "%x",
    ]  # fmt: skip


def test_numbers_become_names_everywhere():
    text = """define void @f(i32 %0, i32 %v2) {
  %2 = add i32 %0, %v2
  br label %3

3:
  %4 = phi i32 [ %2, %1 ], [ %5, %3 ]
  %5 = add i32 %4, 1
  %6 = icmp eq i32 %5, %0
  br i1 %6, label %3, label %7

7:
  ret void
}
"""
    function = parse_function(text, "f")
    name_values(function, FreshNames(function))
    verify(function)
    assert not re.search(r"%\d", function_text(function))
    assert [*function.blocks] == ["%bb1", "%bb3", "%bb7"]
    assert lines(function)[0] == "%v2.1 = add i32 %v0, %v2"


# ---- invariant loads


def test_loads_of_constant_memory_are_invariant():
    function = kernel("""
        entry: %w = getelementptr i8, ptr %launch, i64 8; %c = load ptr, ptr %w; %d = load ptr, ptr %launch; \
            %g = addrspacecast ptr %c to ptr addrspace(1); br label %loop
        loop: %k = phi i64 [ 0, %entry ], [ %next, %loop ]; %p = getelementptr i32, ptr addrspace(1) %g, i64 %k; \
            %a = load i32, ptr addrspace(1) %p; %b = load i32, ptr %d; %v = load volatile i32, ptr %c; \
            %m = load atomic i32, ptr %c monotonic, align 4; %next = add i64 %k, 1; \
            %on = icmp ult i64 %next, 9; br i1 %on, label %loop, label %end
        end: ret void
    """)
    pointers = constant_pointers(function, signature(1))
    assert pointers == {"%c"}
    mark_invariant_loads(function, pointers, "invariant", any_offset=True)
    found = [i.result for i in function.instructions() if "invariant" in i.flags]
    assert found == ["%a"]
    assert "  %a = load i32, ptr addrspace(1) %p, !invariant.load !{}" in function_text(function)


# ---- member masks

DIVERGENT = f"""
    entry: {LANE}; %c = icmp ult i32 %lane, 5; br label %top
    top: br i1 %c, label %then, label %end
    then: %m = {ACTIVE}; call void @mtl_use(i32 %m); br label %end
    end: %n = {ACTIVE}; call void @mtl_use(i32 %n); ret void
"""


def test_members_of_divergent_code_vote_at_the_branch():
    function = kernel(DIVERGENT)
    materialize_member_masks(function, analyse_warp(function), FreshNames(function))
    verify(function)
    assert lines(function, "%then")[0] == "%m = or i32 %mtl.edge.top, 0"
    assert lines(function, "%end")[0] == "%n = load i32, ptr %mtl.mask"
    assert lines(function, "%top")[2] == (
        "%mtl.edge.top = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mtl.edge.top.before, i1 %mtl.edge.top.is)"
    )


def test_without_analysis_the_mask_is_read_where_it_is_used():
    function = kernel(DIVERGENT)
    materialize_member_masks(function, None, FreshNames(function))
    verify(function)
    assert lines(function, "%then")[0] == f"%m = {ACTIVE}"
    assert lines(function, "%end")[0] == f"%n = {ACTIVE}"


def test_early_returns_leave_the_mask_and_exit():
    function = kernel(f"""
        entry: {LANE}; %c = icmp ult i32 %lane, 5; br i1 %c, label %out, label %more
        more: %m = {ACTIVE}; call void @mtl_use(i32 %m); br label %out
        out: ret void
    """)
    materialize_member_masks(function, analyse_warp(function), FreshNames(function))
    verify(function)
    assert function.entry.end.labels == ["%mtl.leave", "%more"]
    assert "store i32 %mtl.stay.entry, ptr %mtl.mask" in lines(function, "%entry")
    assert "exit;" in lines(function, "%mtl.leave")[0]


def test_barriers_in_divergent_code_take_the_members():
    barrier = "call void @llvm.nvvm.barrier.cta.sync.all(i32 0)"
    opened = "call void @mtl_open_divergent_barrier(i32 1)"
    function = kernel(f"""
        entry: {LANE}; {opened}; %c = icmp ult i32 %lane, 5; br label %top
        top: br i1 %c, label %then, label %end
        then: {barrier}; br label %end
        end: {barrier}; ret void
    """)
    divergence = analyse_warp(function)
    assert divergence.stalled == {"%then"}
    materialize_member_masks(function, divergence, FreshNames(function))
    verify(function)
    assert lines(function, "%then")[1] == "call void @mtl_divergent_barrier(i32 %mtl.members)"
    assert lines(function, "%end")[:2] == [barrier, "call void @mtl_leave_divergent_barrier()"]
    plain = kernel(f"entry: {LANE}; {opened}; {barrier}; ret void")
    materialize_member_masks(plain, analyse_warp(plain), FreshNames(plain))
    assert opened not in lines(plain)


def test_what_the_analysis_cannot_see_into_is_refused():
    assembly = f'entry: {LANE}; %m = {ACTIVE}; %x = call i32 asm "mov.u32 $0, 1", "=r"(); ret void'
    with pytest.raises(Unsupported, match="assembly"):
        analyse_warp(kernel(assembly))
    assert analyse_warp(kernel(f"entry: {LANE}; ret void")) == NO_DIVERGENCE


# ---- loops of full warps

LOOP = f"""
    entry: {LANE}; br label %loop
    loop: %i = phi i32 [ %lane, %entry ], [ %next, %loop ]; %m = {ACTIVE}; \
        call void @mtl_use(i32 %m); %next = add i32 %i, 32; %on = icmp ult i32 %next, 99; \
        br i1 %on, label %loop, label %end
    end: %last = phi i32 [ %next, %loop ]; call void @mtl_use(i32 %last); ret void
"""


def test_a_loop_gets_a_copy_for_full_warps():
    function = kernel(LOOP)
    loops = analyse_warp(function).loops
    assert [loop.header for loop in loops] == ["%loop"]
    assert version_full_warp_loops(function, loops, FreshNames(function))
    verify(function)
    assert [*function.blocks] == [
        "%entry", "%loop.guard", "%loop.full_warp", "%loop.between", "%loop", "%end",
    ]  # fmt: skip
    assert function.blocks["%loop.guard"].end.labels == ["%loop.full_warp", "%loop"]
    assert function.blocks["%loop.full_warp"].end.labels == ["%loop.full_warp", "%loop.between"]
    [last] = function.blocks["%end"].phis
    assert [value.name for value in last.operands] == ["%next", "%next.full_warp"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@mtl_use(i32 %last)", "@mtl_use(i32 %next)"),
        ("call void @mtl_use(i32 %m); ", "call void @mtl_use(i32 %m); " * 600),
    ],
    ids=["a value is used after it", "too long"],
)
def test_other_loops_are_left(old, new):
    function = kernel(LOOP.replace(old, new))
    loops = analyse_warp(function).loops
    assert loops
    assert not version_full_warp_loops(function, loops, FreshNames(function))


# ---- tensor cores

PRODUCT = "call <2 x float> @mtl_product_f16(i32 {}, i32 {}, <2 x float> {})"


def test_products_share_an_instruction():
    """Two sums of two products, with the same right factors, one of them transposed twice."""
    function = kernel(f"""
        entry: {LANE}; %t = call i32 @mtl_transposed_matrix(i32 %lane); %r = call i32 @mtl_transposed_matrix(i32 %t); \
            %a = {PRODUCT.format(1, "%r", "zeroinitializer")}; %b = {PRODUCT.format(2, 7, "%a")}; \
            %c = {PRODUCT.format(3, "%lane", "zeroinitializer")}; %d = {PRODUCT.format(4, 7, "%c")}; \
            call void @mtl_use(<2 x float> %b, <2 x float> %d); ret void
    """)
    assert use_tensor_cores(function, FreshNames(function))
    verify(function)
    calls = [i for i in function.instructions() if "mma.sync" in i.callee]
    assert len(calls) == 1
    assert "m16n8k16.row.col.f32.f16.f16.f32" in calls[0].callee
    words = [value.name for value in calls[0].operands[:6]]
    assert words == ["1", "3", "2", "4", "%lane", "7"]
    assert sum("movmatrix" in i.callee for i in function.instructions()) == 2


def test_a_product_whose_sum_is_read_stands_alone():
    function = kernel(f"""
        entry: %a = {PRODUCT.format(1, 2, "zeroinitializer")}; %b = {PRODUCT.format(3, 2, "%a")}; \
            call void @mtl_use(<2 x float> %a, <2 x float> %b); ret void
    """)
    assert use_tensor_cores(function, FreshNames(function))
    verify(function)
    calls = [i for i in function.instructions() if "mma.sync" in i.callee]
    assert [value.name for call in calls for value in call.operands[:3]] == [
        "1",
        "0",
        "2",
        "3",
        "0",
        "2",
    ]
    assert not use_tensor_cores(kernel("entry: ret void"), FreshNames(function))


# ---- coarsening

GUARD = """
    entry: %u.p = getelementptr i8, ptr %launch, i64 68; %u = load i32, ptr %u.p; %is = icmp eq i32 %u, 0; \
        br i1 %is, label %ragged, label %body
    ragged: br label %body
"""
BODY = """
    body: %g = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(); %t = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x(); \
        %s = mul i32 %g, 64; %i = add i32 %s, %t; %c = icmp ult i32 %i, 1000; br i1 %c, label %do, label %out
    do: %d = load ptr, ptr %launch; %w = zext i32 %i to i64; %p = getelementptr float, ptr %d, i64 %w; \
        %x = load float, ptr %p; %y = fmul float %x, 2.0; store float %y, ptr %p; br label %out
    out: ret void
"""
PURE = frozenset(f"@llvm.nvvm.read.ptx.sreg.{name}.x" for name in ("tid", "ctaid"))


def test_the_edge_for_ragged_grids_is_removed():
    function = kernel(GUARD + BODY)
    assert assume_uniform_grid(function, signature())
    verify(function)
    assert [*function.blocks] == ["%entry", "%body", "%do", "%out"]
    assert not assume_uniform_grid(kernel(GUARD + BODY), signature(sources=5))


def test_four_threads_are_interleaved():
    function = kernel(GUARD + BODY)
    assume_uniform_grid(function, signature())
    made = coarsen_threads(function, signature(), PURE, FreshNames(function))
    assert (made.factor, made.is_vectorized) == (4, False)
    assert function.name == "mtl_several"
    verify(function)
    text = "\n".join(lines(function, "%do"))
    assert (text.count("load float"), text.count("store"), text.count("load ptr")) == (4, 4, 1)
    assert function.blocks["%body"].end.labels == ["%do", "%body.none"]
    assert function.blocks["%body.none"].end.labels == ["%mtl.apart", "%out"]


@pytest.mark.parametrize(
    "line",
    [
        "%z = load volatile float, ptr %p;", "%z = atomicrmw add ptr %p, i32 1 monotonic;",
        "%z = call i32 @other();", "%z = load float, ptr addrspace(3) @shared;",
        "%z = mul i32 %t, %g;",
    ],
    ids=["volatile", "atomic", "unknown function", "threadgroup memory", "stride"],
)  # fmt: skip
def test_kernels_that_are_not_coarsened(line):
    function = kernel(BODY.replace("%y = fmul", f"{line} %y = fmul"))
    before = lines(function)
    assert coarsen_threads(function, signature(), PURE, FreshNames(function)) is None
    assert lines(function) == before


# ---- the module


def test_edits_of_a_module():
    ir = """@a = internal unnamed_addr addrspace(3) global [9 x float] undef, align 4
@mtl_report_block = external addrspace(1) constant i64, align 8
declare i32 @mtl_lane()
define dso_local i32 @other() {
  %1 = call i32 @mtl_lane()
  ret i32 %1
}
"""
    assert prepare_module(ir, "plain") == (
        """@a = internal unnamed_addr addrspace(3) global [9 x float] undef, align 16
@mtl_report_block = addrspace(1) externally_initialized global i64 0, align 8
define internal i32 @other() {
  %1 = call i32 @mtl_plain_lane()
  ret i32 %1
}
"""
    )
    declared = declare_intrinsics("", [kernel(f"entry: {LANE}; %m = {ACTIVE}; ret void")])
    assert "declare i32 @llvm.nvvm.activemask()\n" in declared
    assert declare_intrinsics(declared, [kernel(f"entry: %m = {ACTIVE}; ret void")]).strip() == (
        declared.strip()
    )


# ---- the pipeline

TEXT = """#include <metal_stdlib>
kernel void k(device float* y, constant float* x, uint i [[thread_position_in_grid]])
{ y[i] = metal::simd_sum(x[i]); }"""


def test_settings_watch_the_pipeline(capsys):
    with mtl.config.scope(print_after="all", verify_passes=True):
        assert mtl.library(TEXT, target="cuda:sm_90").k.asm["ptx"]
    printed = re.findall(r"^; \*\*\* IR after (\S+) \*\*\*$", capsys.readouterr().err, re.M)
    assert printed == [
        "name-values", "mark-invariant-loads", "warp-divergence", "full-warp-loops", "member-masks", "tensor-cores",
        "assume-uniform-grid", "coarsen-threads",
    ]  # fmt: skip


def test_optional_passes_can_be_left_out():
    lib = mtl.library(TEXT.replace("metal::simd_sum(x[i])", "x[i]"), target="cuda:sm_90")
    assert "ld.global.nc" in lib.function("k").asm["ptx"]
    with mtl.config.scope(disable_pass="mark-invariant-loads,coarsen-threads"):
        lib = mtl.library(TEXT.replace("metal::simd_sum(x[i])", "x[i]"), target="cuda:sm_90")
        ptx = lib.function("k").asm["ptx"]
    assert "ld.global.nc" not in ptx
    assert "mtl_several" not in ptx


def test_passes_have_reasons_and_what_they_need():
    valid = set()
    for each in (*KERNEL, *COARSENING):
        assert len(each.why) > 20
        assert valid.issuperset(each.needs), each.name
        valid |= {*each.gives}
