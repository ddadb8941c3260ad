; RUN: metalloid passes %s --device cpu-check --pass insert-shadow-checks
; A load has a call with its mode, a barrier is followed by one, and a conversion that the sanitizer
; looks at becomes an alarm. Private memory has no calls.

define void @f(ptr %table, float %x, i8 %flag) {
entry:
  %private = alloca [4 x float]
  store float %x, ptr %private
  %base = load ptr, ptr %table
  %y = load float, ptr %base
  call void @__msl_threadgroup_barrier(i32 2)
  %address = getelementptr inbounds i32, ptr %base, i64 3
  %old = atomicrmw add ptr %address, i32 1 monotonic
  call void @mtl_sanitizer_variable(i8 %flag, i32 0)
  %wide = fpext float %x to double
  call void @mtl_sanitizer_conversion(double %wide, i32 32, i32 1, i32 0)
  %i = fptosi float %x to i32
  store i32 %i, ptr %base
  ret void
}

; expect:
; define void @f(ptr %table, float %x, i8 %flag) {
; entry:
;   %private = alloca [4 x float]
;   store float %x, ptr %private
;   call void @mtl_shadow_access(ptr %table, i64 8, i32 5)
;   %base = load ptr, ptr %table
;   call void @mtl_shadow_access(ptr %base, i64 4, i32 5)
;   %y = load float, ptr %base
;   call void @__msl_threadgroup_barrier(i32 2)
;   call void @mtl_shadow_barrier(i32 2)
;   %address = getelementptr inbounds i32, ptr %base, i64 3
;   call void @mtl_shadow_access(ptr %address, i64 4, i32 6)
;   %mtl.address = ptrtoint ptr %address to i64
;   %mtl.low = and i64 %mtl.address, 3
;   %mtl.misaligned = icmp ne i64 %mtl.low, 0
;   call void @mtl_shadow_alarm_if(i1 %mtl.misaligned)
;   %old = atomicrmw add ptr %address, i32 1 monotonic
;   %mtl.no_value = icmp eq i8 %flag, 0
;   call void @mtl_shadow_alarm_if(i1 %mtl.no_value)
;   %wide = fpext float %x to double
;   %mtl.fits = fcmp ogt double %wide, 0xC1E0000000200000
;   %mtl.fits.1 = fcmp olt double %wide, 0x41E0000000000000
;   %mtl.fits.2 = and i1 %mtl.fits, %mtl.fits.1
;   %mtl.bad = xor i1 %mtl.fits.2, true
;   call void @mtl_shadow_alarm_if(i1 %mtl.bad)
;   %i = fptosi float %x to i32
;   call void @mtl_shadow_access(ptr %base, i64 4, i32 0)
;   store i32 %i, ptr %base
;   ret void
; }
