; RUN: metalloid passes %s --device cuda --pass name-values
; Passes add, remove and move values: LLVM would want the numbers in order.
define void @mtl_kernel(ptr %0, i32 %v2) {
  %2 = add i32 1, %v2
  br label %3

3:
  %4 = phi i32 [ %2, %1 ], [ %5, %3 ]
  %5 = add i32 %4, 1
  %6 = icmp eq i32 %5, 100
  br i1 %6, label %3, label %7

7:
  ret void
}

; expect:
; define void @mtl_kernel(ptr %v0, i32 %v2) {
; bb1:
;   %v2.1 = add i32 1, %v2
;   br label %bb3
; bb3:
;   %v4 = phi i32 [ %v2.1, %bb1 ], [ %v5, %bb3 ]
;   %v5 = add i32 %v4, 1
;   %v6 = icmp eq i32 %v5, 100
;   br i1 %v6, label %bb3, label %bb7
; bb7:
;   ret void
; }
