; RUN: metalloid passes %s --device cuda --pass mask-shift-amounts
; Metal's 1 << 33 is 2; LLVM's has no value. Amounts that are constants are left to clang.
define void @mtl_kernel(ptr %launch) {
entry:
  %n = load i32, ptr %launch
  %left = shl nuw i32 1, %n
  %right = lshr i32 %left, 4
  store i32 %right, ptr %launch
  ret void
}

; expect:
; define void @mtl_kernel(ptr %launch) {
; entry:
;   %n = load i32, ptr %launch
;   %mtl.amount = and i32 %n, 31
;   %left = shl i32 1, %mtl.amount
;   %right = lshr i32 %left, 4
;   store i32 %right, ptr %launch
;   ret void
; }
