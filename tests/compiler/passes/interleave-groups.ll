; RUN: metalloid passes %s --pass interleave-groups
; The loads of x and y of a float4 for all lanes are one wide load, and so are the stores.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
entry:
  %i = zext i32 %grid_x to i64
  %p = getelementptr { float, float }, ptr %words, i64 %i
  %q = getelementptr i8, ptr %p, i64 4
  %x = load float, ptr %p, align 8
  %y = load float, ptr %q, align 4
  %sum = fadd float %x, %y
  store float %sum, ptr %p, align 8
  store float %x, ptr %q, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
; entry:
;   %i = zext i32 %grid_x to i64
;   %p = getelementptr { float, float }, ptr %words, i64 %i
;   %q = getelementptr i8, ptr %p, i64 4
;   %x = load float, ptr %p, align 8
;   %y = load float, ptr %q, align 4
;   %sum = fadd float %x, %y
;   store float %sum, ptr %p, align 8
;   store float %x, ptr %q, align 4
;   br label %mtl.exit
; mtl.exit:
;   ret void
; }
; ; uniform: %words %threadgroup_memory
; ; indexed: %grid_x %index %i %p %q
; ; varying: %x %y %sum
; ; group of 2 members of 4 bytes: 0: %x, 1: %y
; ; group of 2 members of 4 bytes: 0: store of %sum, 1: store of %x
