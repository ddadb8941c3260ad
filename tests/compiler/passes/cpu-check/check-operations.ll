; RUN: metalloid passes %s --device cpu-check --pass check-operations
; Arithmetic and functions have calls; those of integers, and those that read other lanes, do not.

define double @f(double %x, float %y, <2 x half> %v, i32 %n) {
entry:
  %z = fdiv double %x, 0.0
  %s = fadd <2 x half> %v, %v
  %r = call float @_ZN5metal4sqrtEf(float %y)
  %w = call float @_ZN5metal8simd_sumEf(float %y)
  %p = call float @_ZN5metal5ldexpEfi(float %y, i32 %n)
  %m = add i32 %n, 1
  ret double %z
}

; expect:
; define double @f(double %x, float %y, <2 x half> %v, i32 %n) {
; entry:
;   %z = fdiv double %x, 0.0
;   call void @mtl_sanitizer_operation(double %z, double %x, double 0.0, double 0.0, i32 2, i32 0)
;   %s = fadd <2 x half> %v, %v
;   %mtl.component = extractelement <2 x half> %s, i32 0
;   %mtl.wide = fpext half %mtl.component to double
;   %mtl.component.1 = extractelement <2 x half> %v, i32 0
;   %mtl.wide.1 = fpext half %mtl.component.1 to double
;   %mtl.component.2 = extractelement <2 x half> %v, i32 0
;   %mtl.wide.2 = fpext half %mtl.component.2 to double
;   call void @mtl_sanitizer_operation(double %mtl.wide, double %mtl.wide.1, double %mtl.wide.2, double 0.0, i32 2, i32 0)
;   %mtl.component.3 = extractelement <2 x half> %s, i32 1
;   %mtl.wide.3 = fpext half %mtl.component.3 to double
;   %mtl.component.4 = extractelement <2 x half> %v, i32 1
;   %mtl.wide.4 = fpext half %mtl.component.4 to double
;   %mtl.component.5 = extractelement <2 x half> %v, i32 1
;   %mtl.wide.5 = fpext half %mtl.component.5 to double
;   call void @mtl_sanitizer_operation(double %mtl.wide.3, double %mtl.wide.4, double %mtl.wide.5, double 0.0, i32 2, i32 0)
;   %r = call float @_ZN5metal4sqrtEf(float %y)
;   %mtl.wide.6 = fpext float %r to double
;   %mtl.wide.7 = fpext float %y to double
;   call void @mtl_sanitizer_operation(double %mtl.wide.6, double %mtl.wide.7, double 0.0, double 0.0, i32 1, i32 0)
;   %w = call float @_ZN5metal8simd_sumEf(float %y)
;   %p = call float @_ZN5metal5ldexpEfi(float %y, i32 %n)
;   %m = add i32 %n, 1
;   ret double %z
; }
