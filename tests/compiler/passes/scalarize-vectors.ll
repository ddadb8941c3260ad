; RUN: metalloid passes %s --pass scalarize-vectors
; A float2 becomes two floats; a shuffle is a choice of names.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
entry:
  %i = zext i32 %grid_x to i64
  %p = getelementptr <2 x float>, ptr %words, i64 %i
  %v = load <2 x float>, ptr %p, align 8
  %swapped = shufflevector <2 x float> %v, <2 x float> poison, <2 x i32> <i32 1, i32 0>
  %sum = fadd <2 x float> %v, %swapped
  store <2 x float> %sum, ptr %p, align 8
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
; entry:
;   %i = zext i32 %grid_x to i64
;   %p = getelementptr <2 x float>, ptr %words, i64 %i
;   %"~1" = getelementptr i8, ptr %p, i64 4
;   %"v~0" = load float, ptr %p, align 8
;   %"v~1" = load float, ptr %"~1", align 4
;   %"sum~0" = fadd float %"v~0", %"v~1"
;   %"sum~1" = fadd float %"v~1", %"v~0"
;   %"~2" = getelementptr i8, ptr %p, i64 4
;   store float %"sum~0", ptr %p, align 8
;   store float %"sum~1", ptr %"~2", align 4
;   ret void
; }
