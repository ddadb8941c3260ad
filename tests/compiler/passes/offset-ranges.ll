; RUN: metalloid passes %s --pass offset-ranges --words 2
; The index is a product of the position in the grid, whose range is of the launch.
define void @mtl_thread(ptr %ids, ptr %words, ptr %threadgroup_memory, i32 %x, i32 %y, i32 %z, i32 %grid_x, i32 %grid_y, i32 %grid_z, i32 %index) {
entry:
  %p = load ptr, ptr %words, align 8
  %j = mul i32 %grid_x, 4
  %i = zext i32 %j to i64
  %a = getelementptr float, ptr %p, i64 %i
  %b = getelementptr i8, ptr %a, i64 4
  %u = load float, ptr %a, align 4
  %v = load float, ptr %b, align 4
  %s = fadd float %u, %v
  store float %s, ptr %a, align 4
  %t = getelementptr float, ptr %p, i64 9
  store float %s, ptr %t, align 4
  ret void
}


; expect:
; define void @mtl_thread(ptr %ids, ptr %words, ptr %threadgroup_memory, i32 %x, i32 %y, i32 %z, i32 %grid_x, i32 %grid_y, i32 %grid_z, i32 %index) {
; entry:
;   %p = load ptr, ptr %words, align 8
;   %j = mul i32 %grid_x, 4
;   %i = zext i32 %j to i64
;   %a = getelementptr float, ptr %p, i64 %i
;   %b = getelementptr i8, ptr %a, i64 4
;   %u = load float, ptr %a, align 4
;   %v = load float, ptr %b, align 4
;   %s = fadd float %u, %v
;   store float %s, ptr %a, align 4
;   %t = getelementptr float, ptr %p, i64 9
;   store float %s, ptr %t, align 4
;   ret void
; }
; ; site 0: bytes 0 to 8 + 4 * %i of word 0, range 5
; ; site 1: bytes 36 to 40 of word 0
; ; range 0: variable i32 3 0 0
; ; range 1: constant i32 4 0 0
; ; range 2: mul i32 0 1 0
; ; range 3: zext i32 2 64 0
; ; range 4: constant i64 4 0 0
; ; range 5: mul i64 3 4 0
