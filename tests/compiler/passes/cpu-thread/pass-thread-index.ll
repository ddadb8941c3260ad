; RUN: metalloid passes %s --device cpu-thread --pass pass-thread-index
; A failed check tells which thread it is.
define void @f(i32 %index, i64 %at) {
entry:
  call void @__msl_outside(i32 0, i64 %at, i64 16)
  unreachable
}

; expect:
; define void @f(i32 %index, i64 %at) {
; entry:
;   call void @__msl_outside_in_thread(i32 0, i64 %at, i64 16, i32 %index, i32 0)
;   unreachable
; }
