; RUN: metalloid passes %s --device cpu-thread --pass number-convergence-points
; The call in the loop has its number and the loop's iteration.
define void @f(i32 %n) {
entry:
  call void @__msl_threadgroup_barrier(i32 1)
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %x = call float @__msl_simd_sum(float 1.0)
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; expect:
; define void @f(i32 %n) {
; entry:
;   call void @__msl_site(i32 1)
;   call void @__msl_threadgroup_barrier(i32 1)
;   br label %loop
; loop:
;   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %mtl.iteration = phi i32 [ 0, %entry ], [ %mtl.iteration.next, %loop ]
;   %mtl.iteration.next = add i32 %mtl.iteration, 1
;   call void @__msl_site(i32 2)
;   call void @__msl_iteration(i32 2, i32 %mtl.iteration)
;   %x = call float @__msl_simd_sum(float 1.0)
;   %next = add i32 %i, 1
;   %more = icmp ult i32 %next, %n
;   br i1 %more, label %loop, label %end
; end:
;   ret void
; }
