; RUN: metalloid passes %s --pass split-at-barriers
; A barrier ends its block: the code after it is another parallel region.
define void @mtl_thread(ptr %threadgroup_memory, i32 %index) {
entry:
  store i32 %index, ptr %threadgroup_memory, align 4
  call void @__msl_threadgroup_barrier(i32 2)
  %x = load i32, ptr %threadgroup_memory, align 4
  store i32 %x, ptr %threadgroup_memory, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %threadgroup_memory, i32 %index) {
; entry:
;   store i32 %index, ptr %threadgroup_memory, align 4
;   call void @__msl_threadgroup_barrier(i32 2)
;   br label %mtl.after1
; mtl.after1:
;   %x = load i32, ptr %threadgroup_memory, align 4
;   store i32 %x, ptr %threadgroup_memory, align 4
;   ret void
; }
