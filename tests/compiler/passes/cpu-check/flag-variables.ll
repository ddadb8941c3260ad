; RUN: metalloid passes %s --device cpu-check --pass flag-variables
; The flags are 0 when the lifetime begins, and 1 after a store. The address of %escapes is given
; away, and it has no flags.

define float @f(i64 %i, float %x) {
entry:
  %a = alloca [4 x float], align 4
  %escapes = alloca float, align 4
  call void @llvm.lifetime.start.p0(i64 16, ptr %a)
  call void @llvm.lifetime.start.p0(i64 4, ptr %escapes)
  call void @g(ptr %escapes)
  %at = getelementptr [4 x float], ptr %a, i64 0, i64 %i
  store float %x, ptr %at, align 4
  %first = load float, ptr %a, align 4
  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 16, i1 false)
  %y = load float, ptr %escapes, align 4
  %sum = fadd float %first, %y
  ret float %sum
}

; expect:
; define float @f(i64 %i, float %x) {
; entry:
;   %a = alloca [4 x float], align 4
;   %a.has_value = alloca [4 x i8], align 1
;   %escapes = alloca float, align 4
;   call void @llvm.lifetime.start.p0(i64 16, ptr %a)
;   call void @llvm.memset.p0.i64(ptr %a.has_value, i8 0, i64 4, i1 false)
;   call void @llvm.lifetime.start.p0(i64 4, ptr %escapes)
;   call void @g(ptr %escapes)
;   %at = getelementptr [4 x float], ptr %a, i64 0, i64 %i
;   %at.has_value = getelementptr [4 x i8], ptr %a.has_value, i64 0, i64 %i
;   store float %x, ptr %at, align 4
;   store i8 1, ptr %at.has_value, align 1
;   %mtl.has_value = load i8, ptr %a.has_value, align 1
;   call void @mtl_sanitizer_variable(i8 %mtl.has_value, i32 0)
;   %first = load float, ptr %a, align 4
;   call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 16, i1 false)
;   call void @llvm.memset.p0.i64(ptr %a.has_value, i8 1, i64 4, i1 false)
;   %y = load float, ptr %escapes, align 4
;   %sum = fadd float %first, %y
;   ret float %sum
; }
