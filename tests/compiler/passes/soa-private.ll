; RUN: metalloid passes %s --pass soa-private
; The elements of the lanes' private arrays lie side by side: steps are as many times as long as there
; are lanes.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
entry:
  %own = alloca [4 x float], align 4
  %i = zext i32 %grid_x to i64
  %k = and i64 %i, 3
  %p = getelementptr [4 x float], ptr %own, i64 0, i64 %k
  store float 1.0, ptr %p, align 4
  %second = getelementptr i8, ptr %own, i64 4
  %x = load float, ptr %second, align 4
  store float %x, ptr %words, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
; entry:
;   %own = alloca [4 x float], align 4, lane_step 4
;   %i = zext i32 %grid_x to i64
;   %k = and i64 %i, 3
;   %"p~0~distance" = mul i64 %k, 32
;   %"p~0" = getelementptr i8, ptr %own, i64 %"p~0~distance"
;   %p = getelementptr i8, ptr %"p~0", i64 0
;   store float 1.0, ptr %p, align 4
;   %second = getelementptr i8, ptr %own, i64 32
;   %x = load float, ptr %second, align 4
;   store float %x, ptr %words, align 4
;   ret void
; }
