"""Debug information of emitted functions."""

from metalloid.compiler.vectorize.subprograms import with_subprograms

MODULE = """define void @thread(ptr %p) #0 !dbg !4 {
entry:
  ret void, !dbg !7
}

!2 = !DIFile(filename: "a.metal", directory: "/b")
!4 = distinct !DISubprogram(name: "thread", scope: !2, file: !2, line: 3, unit: !1)
!5 = distinct !DISubprogram(name: "f", scope: !2, file: !2, line: 1, unit: !1)
!7 = !DILocation(line: 4, column: 2, scope: !4)
!8 = !DILocation(line: 1, column: 9, scope: !5, inlinedAt: !7)
"""
EMITTED = """define internal void @mtl_threads(ptr %p) #vector {
entry:
  %x = load <8 x float>, ptr %p, align 4, !nontemporal !3, !dbg !8
  %y = call <8 x float> @llvm.sqrt.v8f32(<8 x float> %x)
  %z = fadd <8 x float> %y, %x, !dbg !8
  call void @f(<8 x float> %z), !dbg !7
  ret void
}
"""


def test_locations_are_inlined_into_the_emitted_function():
    [text], nodes = with_subprograms(MODULE, "thread", [EMITTED])
    assert (
        text
        == """define internal void @mtl_threads(ptr %p) #vector !dbg !9 {
entry:
  %x = load <8 x float>, ptr %p, align 4, !nontemporal !3, !dbg !11
  %y = call <8 x float> @llvm.sqrt.v8f32(<8 x float> %x), !dbg !10
  %z = fadd <8 x float> %y, %x, !dbg !11
  call void @f(<8 x float> %z), !dbg !12
  ret void
}
"""
    )
    assert nodes == [
        '!9 = distinct !DISubprogram(name: "mtl_threads", scope: !2, file: !2, line: 3, unit: !1)',
        "!10 = distinct !DILocation(line: 0, scope: !9)",
        "!11 = !DILocation(line: 1, column: 9, scope: !5, inlinedAt: !10)",
        "!12 = !DILocation(line: 4, column: 2, scope: !4, inlinedAt: !10)",
    ]


def test_modules_without_debug_information_are_left_alone():
    assert with_subprograms(MODULE.replace(" !dbg !4", ""), "thread", [EMITTED]) == ([EMITTED], [])
