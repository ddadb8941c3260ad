; RUN: metalloid passes %s --pass rematerialize
; An address that is cheap is computed again after the barrier, instead of kept in memory.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %x, i32 %index) {
entry:
  %i = zext i32 %x to i64
  %p = getelementptr float, ptr %words, i64 %i
  store float 1.0, ptr %p, align 4
  call void @__msl_threadgroup_barrier(i32 2)
  br label %after
after:
  %y = load float, ptr %p, align 4
  store float %y, ptr %words, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %x, i32 %index) {
; entry:
;   %i = zext i32 %x to i64
;   %p = getelementptr float, ptr %words, i64 %i
;   store float 1.0, ptr %p, align 4
;   call void @__msl_threadgroup_barrier(i32 2)
;   br label %mtl.after1
; after:
;   %mtl.remat0 = zext i32 %x to i64
;   %mtl.remat1 = getelementptr float, ptr %words, i64 %mtl.remat0
;   %y = load float, ptr %mtl.remat1, align 4
;   store float %y, ptr %words, align 4
;   br label %mtl.exit
; mtl.after1:
;   br label %after
; mtl.exit:
;   ret void
; }
