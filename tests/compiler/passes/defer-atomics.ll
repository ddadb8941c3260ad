; RUN: metalloid passes %s --pass defer-atomics
; Updates at the end of a kernel whose results are unused get accumulators, and flags with their
; numbers.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
entry:
  %i = zext i32 %grid_x to i64
  %p = getelementptr i32, ptr %words, i64 %i
  %x = load i32, ptr %p, align 4
  %total = getelementptr i8, ptr %words, i64 4096
  %0 = atomicrmw add ptr %total, i32 %x monotonic, align 4
  %1 = atomicrmw add ptr %words, i32 1 monotonic, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
; entry:
;   %i = zext i32 %grid_x to i64
;   %p = getelementptr i32, ptr %words, i64 %i
;   %x = load i32, ptr %p, align 4
;   %total = getelementptr i8, ptr %words, i64 4096
;   %0 = atomicrmw add ptr %total, i32 %x monotonic, align 4, accumulator 1
;   %1 = atomicrmw add ptr %words, i32 1 monotonic, align 4, accumulator 0
;   ret void
; }
