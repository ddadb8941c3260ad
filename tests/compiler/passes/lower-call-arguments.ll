; RUN: metalloid passes %s --function mtl_thread --pass lower-call-arguments
; A function gets its own copy of a struct (byval), and returns its result through memory.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %index) {
entry:
  %pair = alloca { float, float }, align 4
  store float 2.0, ptr %pair, align 4
  %sum = call float @sum(ptr %pair)
  store float %sum, ptr %words, align 4
  ret void
}

define internal float @sum(ptr byval({ float, float }) %pair) {
entry:
  %p = getelementptr { float, float }, ptr %pair, i64 0, i32 1
  %x = load float, ptr %pair, align 4
  store float %x, ptr %p, align 4
  ret float %x
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %index) {
; entry:
;   %mtl.argument0 = alloca { float, float }
;   %mtl.argument1 = alloca float
;   %pair = alloca { float, float }, align 4
;   store float 2.0, ptr %pair, align 4
;   call void @llvm.memcpy.p0.p0.i64(ptr %mtl.argument0, ptr %pair, i64 8, i1 false)
;   call void @sum(ptr %mtl.argument0, ptr %mtl.argument1)
;   %sum = load float, ptr %mtl.argument1, align 1
;   store float %sum, ptr %words, align 4
;   ret void
; }
