; RUN: metalloid passes %s --device cpu-check --pass instrument-accesses
; Shuffles and conversions have sites, too.

define i32 @f(float %x) {
entry:
  %v = call float @__msl_simd_shuffle_xor_b32(float %x, i16 1)
  %wide = fpext float %v to double
  call void @mtl_sanitizer_conversion(double %wide, i32 32, i32 1, i32 0)
  %i = fptosi float %v to i32
  ret i32 %i
}

; expect:
; define i32 @f(float %x) {
; entry:
;   call void @mtl_sanitizer_shuffle(i32 0)
;   %v = call float @__msl_simd_shuffle_xor_b32(float %x, i16 1)
;   %wide = fpext float %v to double
;   call void @mtl_sanitizer_conversion(double %wide, i32 32, i32 1, i32 1)
;   %i = fptosi float %v to i32
;   ret i32 %i
; }
; ; site 0: CALL
; ; site 1: CALL double
