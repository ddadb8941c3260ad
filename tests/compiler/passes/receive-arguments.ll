; RUN: metalloid passes %s --function scaled --pass receive-arguments
; Private parameters become arrays of all lanes; the result is stored through one more of them.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %index) {
entry:
  %pair = alloca [2 x float], align 4
  %i = uitofp i32 %index to float
  store float %i, ptr %pair, align 4
  %sum = call float @scaled(ptr %pair, float %i)
  store float %sum, ptr %words, align 4
  ret void
}

define internal float @scaled(ptr %pair, float %factor) {
entry:
  %x = load float, ptr %pair, align 4
  %y = fmul float %x, %factor
  ret float %y
}

; expect:
; define internal void @scaled(ptr %mtl.parameter0, float %mtl.parameter1, ptr %mtl.parameter2) {
; entry:
;   %mtl.parameter0.array = alloca parameter {}, of ptr %mtl.parameter0
;   %mtl.parameter2.array = alloca parameter float, of ptr %mtl.parameter2
;   %x = load float, ptr %mtl.parameter0.array, align 4
;   %y = fmul float %x, %mtl.parameter1
;   store float %y, ptr %mtl.parameter2.array, align 1
;   ret void
; }
