; RUN: metalloid passes %s --device cpu-thread --pass forget-private-volatile
; Other memory stays volatile.
define float @f(ptr %p, float %x) {
entry:
  %v = alloca float, align 4
  store volatile float %x, ptr %v, align 4
  %a = load volatile float, ptr %v, align 4
  %b = load volatile float, ptr %p, align 4
  %c = fadd float %a, %b
  ret float %c
}

; expect:
; define float @f(ptr %p, float %x) {
; entry:
;   %v = alloca float, align 4
;   store float %x, ptr %v, align 4
;   %a = load float, ptr %v, align 4
;   %b = load volatile float, ptr %p, align 4
;   %c = fadd float %a, %b
;   ret float %c
; }
