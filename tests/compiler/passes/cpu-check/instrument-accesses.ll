; RUN: metalloid passes %s --device cpu-check --pass instrument-accesses
; Private memory has no calls. An update is a read and a write.

define void @f(ptr addrspace(5) %in, ptr addrspace(3) %tile, i64 %i) {
entry:
  %private = alloca [4 x float], align 4
  %from = getelementptr float, ptr addrspace(5) %in, i64 %i
  %x = load <3 x float>, ptr addrspace(5) %from, align 4
  %y = extractelement <3 x float> %x, i64 0
  store float %y, ptr %private, align 4
  store float %y, ptr addrspace(3) %tile, align 4
  fence release
  %old = atomicrmw add ptr addrspace(5) %in, i32 1 monotonic, align 4
  call void @llvm.memcpy.p3.p5.i64(ptr addrspace(3) %tile, ptr addrspace(5) %in, i64 16, i1 false)
  ret void
}

; expect:
; define void @f(ptr addrspace(5) %in, ptr addrspace(3) %tile, i64 %i) {
; entry:
;   %private = alloca [4 x float], align 4
;   %from = getelementptr float, ptr addrspace(5) %in, i64 %i
;   %mtl.accessed = addrspacecast ptr addrspace(5) %from to ptr
;   call void @mtl_sanitizer_access(ptr %mtl.accessed, i64 12, i32 0, i32 513)
;   %x = load <3 x float>, ptr addrspace(5) %from, align 4
;   %y = extractelement <3 x float> %x, i64 0
;   store float %y, ptr %private, align 4
;   %mtl.accessed.1 = addrspacecast ptr addrspace(3) %tile to ptr
;   call void @mtl_sanitizer_access(ptr %mtl.accessed.1, i64 4, i32 1, i32 514)
;   store float %y, ptr addrspace(3) %tile, align 4
;   call void @mtl_sanitizer_fence(i32 1, i32 0)
;   fence release
;   %mtl.accessed.2 = addrspacecast ptr addrspace(5) %in to ptr
;   call void @mtl_sanitizer_access(ptr %mtl.accessed.2, i64 4, i32 2, i32 519)
;   %old = atomicrmw add ptr addrspace(5) %in, i32 1 monotonic, align 4
;   %mtl.accessed.3 = addrspacecast ptr addrspace(5) %in to ptr
;   call void @mtl_sanitizer_access(ptr %mtl.accessed.3, i64 16, i32 3, i32 9)
;   %mtl.accessed.4 = addrspacecast ptr addrspace(3) %tile to ptr
;   call void @mtl_sanitizer_access(ptr %mtl.accessed.4, i64 16, i32 4, i32 10)
;   call void @llvm.memcpy.p3.p5.i64(ptr addrspace(3) %tile, ptr addrspace(5) %in, i64 16, i1 false)
;   ret void
; }
; ; site 0: READ <3 x float>
; ; site 1: WRITE float
; ; site 2: READ|WRITE|ATOMIC i32
; ; site 3: READ|COPY
; ; site 4: WRITE|COPY
