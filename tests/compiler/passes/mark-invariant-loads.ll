; RUN: metalloid passes %s --pass mark-invariant-loads
; What a launch passes does not change during a call: loads from %words give the same everywhere.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %index) {
entry:
  %second = getelementptr i8, ptr %words, i64 8
  %buffer = load ptr, ptr %second, align 8
  %x = load float, ptr %buffer, align 4
  store float %x, ptr %buffer, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %index) {
; entry:
;   %second = getelementptr i8, ptr %words, i64 8
;   %buffer = load call_invariant ptr, ptr %second, align 8
;   %x = load float, ptr %buffer, align 4
;   store float %x, ptr %buffer, align 4
;   ret void
; }
