; RUN: metalloid passes %s --device cpu-thread --pass mask-shift-amounts
; MSL defines shifts by more bits than a scalar has.
define i32 @f(i32 %x, i32 %n) {
entry:
  %a = shl i32 %x, %n
  %b = lshr i32 %a, 3
  ret i32 %b
}

; expect:
; define i32 @f(i32 %x, i32 %n) {
; entry:
;   %mtl.amount = and i32 %n, 31
;   %a = shl i32 %x, %mtl.amount
;   %b = lshr i32 %a, 3
;   ret i32 %b
; }
