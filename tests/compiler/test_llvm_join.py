"""Two modules of LLVM IR as one."""

import pytest

from metalloid.compiler.ir.link_modules import link_modules
from metalloid.compiler.toolchain import clang

FIRST = """source_filename = "first"
%struct.pair = type { i32, float }
%"class.a::b" = type { i32 }

define i32 @helper(ptr %p) #0 {
  %q = getelementptr %struct.pair, ptr %p, i64 1
  %v = load i32, ptr %q, align 4, !tbaa !2
  ret i32 %v
}

define internal i32 @thread(i32 %x) #1 {
  %a = alloca %"class.a::b"
  %v = call i32 @llvm.umin.i32(i32 %x, i32 7)
  ret i32 %v
}

declare i32 @llvm.umin.i32(i32, i32) #1

attributes #0 = { noinline nounwind }
attributes #1 = { nounwind }

!llvm.module.flags = !{!0}
!0 = !{i32 8, !"PIC Level", i32 2}
!1 = !{!"root"}
!2 = !{!3, !3, i64 0}
!3 = !{!"int", !1}
"""
SECOND = """; ModuleID = '-'
source_filename = "second"
target triple = "x86_64-unknown-linux-gnu"
%struct.pair = type { double, double }
%"class.a::b" = type { ptr }

$helper = comdat any
@width = external constant i32, align 4

define i32 @entry(ptr %p, i32 %x) #0 {
  %w = load i32, ptr @width, align 4, !invariant.load !4
  %v = call i32 @thread(i32 %x) #1
  %u = call i32 @llvm.umin.i32(i32 %v, i32 %w)
  %h = call i32 @helper(ptr %p), !range !5
  %q = getelementptr %struct.pair, ptr %p, i64 1
  %b = alloca %"class.a::b"
  %s = add i32 %u, %h
  ret i32 %s
}

; Function Attrs: nounwind
define linkonce_odr i32 @helper(ptr %p) #1 comdat align 2 {
  ret i32 3
}

declare i32 @thread(i32) #0
declare i32 @llvm.umin.i32(i32, i32) #1
declare i32 @llvm.umax.i32(i32, i32) #1

attributes #0 = { "probe-stack"="inline-asm" }
attributes #1 = { nounwind }

!llvm.module.flags = !{!0}
!llvm.ident = !{!1}
!0 = !{i32 8, !"PIC Level", i32 2}
!1 = !{!"clang"}
!4 = !{}
!5 = !{i32 0, i32 9}
"""


@pytest.fixture(scope="module")
def joined():
    return link_modules(FIRST, SECOND, "second")


def test_clang_takes_it(joined):
    command = ["clang", "-x", "ir", "-O0", "-w", "-S", "-emit-llvm", "-o", "-", "-"]
    outcome = clang.run(command, joined)
    assert outcome.status == 0, outcome.messages


def test_numbers_continue_those_of_the_first(joined):
    assert "define i32 @entry(ptr %p, i32 %x) #2 {" in joined
    assert 'attributes #2 = { "probe-stack"="inline-asm" }' in joined
    assert "!invariant.load !8" in joined
    assert "!9 = !{i32 0, i32 9}" in joined
    assert joined.startswith(FIRST)


def test_each_retains_its_types_and_inline_functions(joined):
    assert "%second.struct.pair = type { double, double }" in joined
    assert '%b = alloca %"second.class.a::b"' in joined
    assert "call i32 @second.helper(ptr %p)" in joined
    assert "define internal i32 @second.helper(ptr %p) #3 align 2 {" in joined
    assert joined.count("define i32 @helper(") == 1


def test_nothing_is_declared_twice(joined):
    assert joined.count("@llvm.umin.i32(i32, i32)") == 1
    assert "declare i32 @thread(" not in joined
    assert "declare i32 @llvm.umax.i32(i32, i32) #3" in joined
    assert joined.count("!llvm.module.flags") == 1
    assert "comdat" not in joined
