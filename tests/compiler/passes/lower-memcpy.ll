; RUN: metalloid passes %s --pass lower-memcpy
; Small copies become loads and stores; 16 bytes or more between buffers stay one copy.
define void @mtl_thread(ptr %ids, ptr %words, ptr %threadgroup_memory, i32 %index) {
entry:
  %own = alloca [4 x float], align 4
  call void @llvm.memset.p0.i64(ptr %own, i8 0, i64 16, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %ids, ptr %words, i64 8, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %ids, ptr %words, i64 32, i1 false)
  ret void
}

; expect:
; define void @mtl_thread(ptr %ids, ptr %words, ptr %threadgroup_memory, i32 %index) {
; entry:
;   %own = alloca [4 x float], align 4
;   store i32 0, ptr %own, align 1
;   %mtl.copy1.to1 = getelementptr i8, ptr %own, i64 4
;   store i32 0, ptr %mtl.copy1.to1, align 1
;   %mtl.copy1.to2 = getelementptr i8, ptr %own, i64 8
;   store i32 0, ptr %mtl.copy1.to2, align 1
;   %mtl.copy1.to3 = getelementptr i8, ptr %own, i64 12
;   store i32 0, ptr %mtl.copy1.to3, align 1
;   %mtl.copy2.0 = load i32, ptr %words, align 1
;   %mtl.copy2.from1 = getelementptr i8, ptr %words, i64 4
;   %mtl.copy2.1 = load i32, ptr %mtl.copy2.from1, align 1
;   store i32 %mtl.copy2.0, ptr %ids, align 1
;   %mtl.copy2.to1 = getelementptr i8, ptr %ids, i64 4
;   store i32 %mtl.copy2.1, ptr %mtl.copy2.to1, align 1
;   "mtl.copy"(ptr %words, i64 32, ptr %ids) : void
;   ret void
; }
