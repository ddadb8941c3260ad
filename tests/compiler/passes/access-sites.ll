; RUN: metalloid passes %s --pass access-sites --words 2
; The second load and the store are at constant distances from the first load: one check covers them.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
entry:
  %p = load ptr, ptr %words, align 8
  %i = zext i32 %grid_x to i64
  %a = getelementptr float, ptr %p, i64 %i
  %b = getelementptr i8, ptr %a, i64 4
  %x = load float, ptr %a, align 4
  %y = load float, ptr %b, align 4
  %s = fadd float %x, %y
  store float %s, ptr %a, align 4
  %t = getelementptr float, ptr %p, i64 9
  store float %s, ptr %t, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
; entry:
;   %p = load ptr, ptr %words, align 8
;   %i = zext i32 %grid_x to i64
;   %a = getelementptr float, ptr %p, i64 %i
;   %b = getelementptr i8, ptr %a, i64 4
;   %x = load float, ptr %a, align 4
;   %y = load float, ptr %b, align 4
;   %s = fadd float %x, %y
;   store float %s, ptr %a, align 4
;   %t = getelementptr float, ptr %p, i64 9
;   store float %s, ptr %t, align 4
;   ret void
; }
; ; site 0: bytes 0 to 8 + 4 * %i of word 0
; ; site 1: bytes 36 to 40 of word 0
