; RUN: metalloid passes %s --pass lower-threadgroup-variables
; Threadgroup variables, which are thread-local globals on a CPU, become offsets from the end of the
; threadgroup's memory.
@tile = internal thread_local global [32 x float] undef, align 4
@total = internal thread_local global i32 undef, align 4

define void @mtl_thread(ptr %threadgroup_memory, i32 %index) {
entry:
  %i = zext i32 %index to i64
  %p = getelementptr [32 x float], ptr @tile, i64 0, i64 %i
  store float 1.0, ptr %p, align 4
  store i32 0, ptr @total, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %threadgroup_memory, i32 %index) {
; entry:
;   %mtl.variable0 = getelementptr i8, ptr %threadgroup_memory, i64 -128
;   %mtl.variable1 = getelementptr i8, ptr %threadgroup_memory, i64 -132
;   %i = zext i32 %index to i64
;   %p = getelementptr [32 x float], ptr %mtl.variable0, i64 0, i64 %i
;   store float 1.0, ptr %p, align 4
;   store i32 0, ptr %mtl.variable1, align 4
;   ret void
; }
