; RUN: metalloid passes %s --device cuda --pass record-faults
; The thread passes the launch, in which the record is, and leaves by the block that others leave by.
define void @mtl_kernel(ptr %launch) {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = zext i32 %lane to i64
  %inside = icmp ult i64 %at, 16
  br i1 %inside, label %access, label %fails
access:
  ret void
fails:
  call void @__msl_outside(i32 3, i64 %at, i64 16)
  unreachable
mtl.leave:
  call void asm sideeffect "exit;", "~{memory}"()
  unreachable
}

; expect:
; define void @mtl_kernel(ptr %launch) {
; entry:
;   %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
;   %at = zext i32 %lane to i64
;   %inside = icmp ult i64 %at, 16
;   br i1 %inside, label %access, label %fails
; access:
;   ret void
; fails:
;   call void @mtl_outside(i32 3, i64 %at, i64 16, ptr %launch)
;   br label %mtl.leave
; mtl.leave:
;   call void asm sideeffect "exit;", "~{memory}"()
;   unreachable
; }
