"""Checks of accesses: the IR that they become, and ranges that prove them."""

import re

from metalloid.compiler.bounds.interface import vector_interface
from metalloid.compiler.bounds.operations import Op
from metalloid.compiler.bounds.pipeline import BoundsContext, add_checks
from metalloid.compiler.bounds.range_program import Variable
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.ir.printer import function_text

_HEAD = (
    "define void @mtl_thread(ptr %ids, ptr %words, ptr %memory, i32 %x, i32 %y, i32 %z, "
    "i32 %grid_x, i32 %grid_y, i32 %grid_z, i32 %index) {\nentry:\n  %p = load ptr, ptr %words\n"
)
_COUNT = 2


def checked(body, every=True, sizes=None):
    """The text after ``entry:`` with checks, and what is known of them."""
    function = parse_function(f"{_HEAD}{body}\n}}\n", "mtl_thread")
    context = BoundsContext(vector_interface(_COUNT), sizes or {}, {}, lambda *_: every)
    add_checks(function, context)
    return function_text(function).partition("entry:\n")[2], context


def test_a_check():
    text, checks = checked(
        """  %i = zext i32 %grid_x to i64
  %a = getelementptr float, ptr %p, i64 %i
  %v = load float, ptr %a
  store float %v, ptr %a
  ret void"""
    )
    assert (
        text
        == """\
  %mtl.extent.at = getelementptr i8, ptr %words, i64 16
  %mtl.extent = load i64, ptr %mtl.extent.at, align 8
  %mtl.check = sub i64 %mtl.extent, 4
  %mtl.check.1 = lshr i64 %mtl.check, 2
  %mtl.check.2 = add i64 %mtl.check.1, 1
  %mtl.check.3 = icmp uge i64 %mtl.extent, 4
  %mtl.check.4 = select i1 %mtl.check.3, i64 %mtl.check.2, i64 0
  %mtl.check.5 = icmp ult i64 %mtl.check.4, 4294967295
  %mtl.check.6 = select i1 %mtl.check.5, i64 %mtl.check.4, i64 4294967295
  %mtl.check.7 = trunc i64 %mtl.check.6 to i32
  %p = load ptr, ptr %words
  %i = zext i32 %grid_x to i64
  %a = getelementptr float, ptr %p, i64 %i
  %mtl.check.8 = icmp ult i32 %grid_x, %mtl.check.7
  %mtl.offset = mul i64 %i, 4
  br i1 %mtl.check.8, label %entry.inside, label %mtl.outside
entry.inside:
  %v = load float, ptr %a
  store float %v, ptr %a
  ret void
mtl.outside:
  %mtl.site = phi i32 [ 0, %entry ]
  %mtl.outside.offset = phi i64 [ %mtl.offset, %entry ]
  %mtl.outside.extent = phi i64 [ %mtl.extent, %entry ]
  call void @__msl_outside(i32 %mtl.site, i64 %mtl.outside.offset, i64 %mtl.outside.extent)
  unreachable
}"""
    )
    assert [(a.distance, a.nbytes, a.writes) for a in checks.sites[0].accesses] == [
        (0, 4, False), (0, 4, True),
    ]  # fmt: skip


def test_neighbouring_accesses_share_a_check():
    text, checks = checked(
        """  %i = zext i32 %x to i64
  %a = getelementptr [4 x float], ptr %p, i64 %i
  %b = getelementptr i8, ptr %a, i64 12
  %v = load float, ptr %b
  store float %v, ptr %a
  ret void"""
    )
    [site] = checks.sites
    assert (site.first, site.end) == (0, 16)
    assert text.count("br i1") == 1


def test_a_site_on_all_paths_covers_others():
    text, checks = checked(
        """  %i = zext i32 %x to i64
  %a = getelementptr float, ptr %p, i64 %i
  %v = load float, ptr %a
  %c = fcmp ogt float %v, 0.0
  br i1 %c, label %then, label %exit
then:
  store float 0.0, ptr %a
  br label %exit
exit:
  ret void"""
    )
    assert len(checks.sites) == 1
    assert text.count("label %mtl.outside") == 1


def test_constant_accesses_of_variables_are_known():
    _, checks = checked(
        """  %t = alloca [8 x i32]
  %a = getelementptr [8 x i32], ptr %t, i64 0, i64 7
  store i32 1, ptr %a
  %b = getelementptr i8, ptr @g, i64 12
  store i32 1, ptr %b
  ret void""",
        sizes={"@g": 16},
    )
    assert checks.sites == []


def test_an_address_in_a_loop_has_an_offset():
    text, checks = checked(
        """  %n = zext i32 %x to i64
  br label %loop
loop:
  %q = phi ptr [ %p, %entry ], [ %next, %loop ]
  %k = phi i64 [ 0, %entry ], [ %more, %loop ]
  store i32 1, ptr %q
  %next = getelementptr i32, ptr %q, i64 %n
  %more = add nuw i64 %k, 1
  %done = icmp eq i64 %more, 10
  br i1 %done, label %exit, label %loop
exit:
  ret void"""
    )
    assert re.search(r"%q.offset = phi i64 \[ 0, %entry \], \[ %\S+, %loop\S* \]", text)
    node = checks.program.nodes[checks.sites[0].node]
    assert node.op == Op.ADD  # the initial offset and a step for each iteration


def test_loaded_indices_have_no_range():
    text, checks = checked(
        """  %at = load ptr, ptr %words
  %j = load i32, ptr %at
  %i = sext i32 %j to i64
  %a = getelementptr float, ptr %p, i64 %i
  store float 0.0, ptr %a
  ret void""",
        every=False,
    )
    assert [site.node for site in checks.sites] == [-1, -2]  # the load of the index has no terms
    assert "outside" not in text


def test_a_guard_narrows_a_range():
    _, checks = checked(
        """  %in = icmp ult i32 %grid_x, 10
  br i1 %in, label %then, label %exit
then:
  %i = zext i32 %grid_x to i64
  %a = getelementptr i8, ptr %p, i64 %i
  store i8 0, ptr %a
  br label %exit
exit:
  ret void"""
    )
    nodes = checks.program.nodes
    zext = nodes[checks.sites[0].node]
    guard = nodes[zext.a]
    assert (zext.op, guard.op) == (Op.ZEXT, Op.ULT)
    assert (nodes[guard.a].op, nodes[guard.a].a) == (Op.VARIABLE, Variable.GRID_POSITION)
    assert (nodes[guard.b].op, nodes[guard.b].a) == (Op.CONSTANT, 10)
