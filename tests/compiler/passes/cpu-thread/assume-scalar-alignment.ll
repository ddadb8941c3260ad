; RUN: metalloid passes %s --device cpu-thread --pass assume-scalar-alignment
; A float4 may be at any float.
define void @f(ptr %p, ptr %q) {
entry:
  %x = load <4 x float>, ptr %p, align 16
  store <4 x float> %x, ptr %q, align 16
  ret void
}

; expect:
; define void @f(ptr %p, ptr %q) {
; entry:
;   %x = load <4 x float>, ptr %p, align 4
;   store <4 x float> %x, ptr %q, align 4
;   ret void
; }
