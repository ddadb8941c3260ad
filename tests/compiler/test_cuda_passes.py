"""The passes over kernels for NVIDIA GPUs: where they leave a function alone, and their pipeline.

``passes/cuda`` shows what each does to a function.
"""

import re

import pytest

import metalloid as mtl
from metalloid.backends.cuda.compile.coarsening import assume_uniform_grid, coarsen_threads
from metalloid.backends.cuda.compile.full_warp_loops import version_full_warp_loops
from metalloid.backends.cuda.compile.launch_data import LaunchLayout
from metalloid.backends.cuda.compile.member_masks import materialize_member_masks
from metalloid.backends.cuda.compile.module_edits import declare_intrinsics, prepare_module
from metalloid.backends.cuda.compile.pipeline import COARSENING, KERNEL
from metalloid.backends.cuda.compile.warp_divergence import NO_DIVERGENCE, analyse_warp
from metalloid.compiler.ir.fresh_names import FreshNames
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.ir.printer import instruction_text
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.ir.verifier import verify

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


def lines(function, block=None):
    """Instructions as text."""
    scope = function if block is None else function.blocks[block]
    return [*map(instruction_text, scope.instructions())]


# ---- names


def test_fresh_names_are_those_that_nothing_has():
    names = FreshNames(kernel(f"entry: {LANE}; ret void"))
    assert [names("%lane"), names("%lane"), names("%entry"), names("%launch"), names("%x")] == [
        "%lane.1", "%lane.2", "%entry.1", "%launch.1", "%x",
    ]  # fmt: skip


# ---- member masks

DIVERGENT = f"""
    entry: {LANE}; %c = icmp ult i32 %lane, 5; br label %top
    top: br i1 %c, label %then, label %end
    then: %m = {ACTIVE}; call void @mtl_use(i32 %m); br label %end
    end: %n = {ACTIVE}; call void @mtl_use(i32 %n); ret void
"""


def test_without_analysis_the_mask_is_read_where_it_is_used():
    function = kernel(DIVERGENT)
    materialize_member_masks(function, None, FreshNames(function))
    verify(function)
    assert lines(function, "%then")[0] == f"%m = {ACTIVE}"
    assert lines(function, "%end")[0] == f"%n = {ACTIVE}"


def test_without_divergent_barriers_threads_need_not_leave():
    opened = "call void @mtl_open_divergent_barrier(i32 1)"
    barrier = "call void @llvm.nvvm.barrier.cta.sync.all(i32 0)"
    function = kernel(f"entry: {LANE}; {opened}; {barrier}; ret void")
    materialize_member_masks(function, analyse_warp(function), FreshNames(function))
    assert opened not in lines(function)
    assert barrier in lines(function)


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


# ---- coarsening

GUARD = """
    entry: %u.p = getelementptr i8, ptr %launch, i64 68; %u = load i32, ptr %u.p; %is = icmp eq i32 %u, 0; \
        br i1 %is, label %tail, label %body
    tail: br label %body
"""
BODY = """
    body: %g = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(); %t = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x(); \
        %s = mul i32 %g, 64; %i = add i32 %s, %t; %c = icmp ult i32 %i, 1000; br i1 %c, label %do, label %out
    do: %d = load ptr, ptr %launch; %w = zext i32 %i to i64; %p = getelementptr float, ptr %d, i64 %w; \
        %x = load float, ptr %p; %y = fmul float %x, 2.0; store float %y, ptr %p; br label %out
    out: ret void
"""
PURE = frozenset(f"@llvm.nvvm.read.ptx.sreg.{name}.x" for name in ("tid", "ctaid"))


def test_other_words_of_the_launch_say_nothing_of_the_grid():
    assert assume_uniform_grid(kernel(GUARD + BODY), LaunchLayout(4))
    assert not assume_uniform_grid(kernel(GUARD + BODY), LaunchLayout(5))


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
    assert coarsen_threads(function, LaunchLayout(4), PURE, FreshNames(function)) is None
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
        "name-values", "mask-shift-amounts", "mark-invariant-loads", "warp-divergence", "full-warp-loops", "member-masks", "tensor-cores",
        "assume-uniform-grid", "coarsen-threads", "coarsen-reductions",
        "interleave-iterations",
    ]  # fmt: skip


def test_optional_passes_can_be_left_out():
    lib = mtl.library(TEXT.replace("metal::simd_sum(x[i])", "x[i]"), target="cuda:sm_90")
    assert "ld.global.nc" in lib.function("k").asm["ptx"]
    with mtl.config.scope(disable_pass="mark-invariant-loads,coarsen-threads"):
        lib = mtl.library(TEXT.replace("metal::simd_sum(x[i])", "x[i]"), target="cuda:sm_90")
        ptx = lib.function("k").asm["ptx"]
    assert "ld.global.nc" not in ptx
    assert "_coarsened" not in ptx


def test_passes_have_reasons_and_what_they_need():
    valid = set()
    for each in (*KERNEL, *COARSENING):
        assert len(each.why) > 20
        assert valid.issuperset(each.needs), each.name
        valid |= {*each.gives}
