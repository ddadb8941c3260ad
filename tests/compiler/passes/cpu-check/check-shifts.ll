; RUN: metalloid passes %s --device cpu-check --pass check-shifts
; Amounts have calls, before their low bits are taken; constant ones do not, as clang warns of those.

define i32 @f(i32 %x, i32 %n, i16 %m, <2 x i16> %v, <2 x i16> %w) {
entry:
  %a = shl i32 %x, %n
  %b = ashr i16 %m, %m
  %mask = and <2 x i16> %w, <i16 15, i16 15>
  %c = lshr <2 x i16> %v, %mask
  %d = shl i32 %a, 3
  ret i32 %d
}

; expect:
; define i32 @f(i32 %x, i32 %n, i16 %m, <2 x i16> %v, <2 x i16> %w) {
; entry:
;   %mtl.amount = sext i32 %n to i64
;   call void @mtl_sanitizer_shift(i64 %mtl.amount, i32 32, i32 0)
;   %a = shl i32 %x, %n
;   %mtl.amount.1 = sext i16 %m to i64
;   call void @mtl_sanitizer_shift(i64 %mtl.amount.1, i32 16, i32 0)
;   %b = ashr i16 %m, %m
;   %mask = and <2 x i16> %w, < i16 15 , i16 15 >
;   %mtl.component = extractelement <2 x i16> %w, i32 0
;   %mtl.amount.2 = sext i16 %mtl.component to i64
;   call void @mtl_sanitizer_shift(i64 %mtl.amount.2, i32 16, i32 0)
;   %mtl.component.1 = extractelement <2 x i16> %w, i32 1
;   %mtl.amount.3 = sext i16 %mtl.component.1 to i64
;   call void @mtl_sanitizer_shift(i64 %mtl.amount.3, i32 16, i32 0)
;   %c = lshr <2 x i16> %v, %mask
;   %d = shl i32 %a, 3
;   ret i32 %d
; }
