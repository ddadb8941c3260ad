; RUN: metalloid passes %s --device cpu-check --pass check-conversions
; A call for each component, before the conversion.

define <2 x i16> @f(float %x, <2 x double> %v) {
entry:
  %i = fptosi float %x to i32
  %w = fptoui <2 x double> %v to <2 x i16>
  ret <2 x i16> %w
}

; expect:
; define <2 x i16> @f(float %x, <2 x double> %v) {
; entry:
;   %mtl.wide = fpext float %x to double
;   call void @mtl_sanitizer_conversion(double %mtl.wide, i32 32, i32 1, i32 0)
;   %i = fptosi float %x to i32
;   %mtl.component = extractelement <2 x double> %v, i32 0
;   call void @mtl_sanitizer_conversion(double %mtl.component, i32 16, i32 0, i32 0)
;   %mtl.component.1 = extractelement <2 x double> %v, i32 1
;   call void @mtl_sanitizer_conversion(double %mtl.component.1, i32 16, i32 0, i32 0)
;   %w = fptoui <2 x double> %v to <2 x i16>
;   ret <2 x i16> %w
; }
