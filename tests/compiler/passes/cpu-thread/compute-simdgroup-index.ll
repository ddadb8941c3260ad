; RUN: metalloid passes %s --device cpu-thread --pass compute-simdgroup-index
; A simdgroup has 32 threads.
define i32 @f(i32 %index) {
entry:
  %s = call i32 @__msl_simdgroup_index()
  ret i32 %s
}

; expect:
; define i32 @f(i32 %index) {
; entry:
;   %s = lshr i32 %index, 5
;   ret i32 %s
; }
