; RUN: metalloid passes %s --pass legalize-bf16
; bfloats are 16-bit integers in memory, and floats in arithmetic.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %index) {
entry:
  %x = load bfloat, ptr %words, align 2
  %negated = fneg bfloat %x
  %sum = fadd bfloat %negated, 0xR3F80
  store bfloat %sum, ptr %words, align 2
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %index) {
; entry:
;   %x = load i16, ptr %words, align 2
;   %negated = xor i16 %x, -32768
;   %mtl.bfloat0 = bitcast i16 %negated to bfloat
;   %mtl.bfloat1 = fpext bfloat %mtl.bfloat0 to float
;   %mtl.bfloat2 = bitcast i16 16256 to bfloat
;   %mtl.bfloat3 = fpext bfloat %mtl.bfloat2 to float
;   %mtl.bfloat4 = fadd float %mtl.bfloat1, %mtl.bfloat3
;   %mtl.bfloat5 = fptrunc float %mtl.bfloat4 to bfloat
;   %sum = bitcast bfloat %mtl.bfloat5 to i16
;   store i16 %sum, ptr %words, align 2
;   ret void
; }
