; RUN: metalloid passes %s --device cuda --pass member-masks
; Threads that return early leave the mask of the others, and exit.
define void @mtl_kernel(ptr %launch) {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %is.few = icmp ult i32 %lane, 5
  br i1 %is.few, label %out, label %more
more:
  %m = call i32 @llvm.nvvm.activemask()
  call void @mtl_use(i32 %m)
  br label %out
out:
  ret void
}

; expect:
; define void @mtl_kernel(ptr %launch) {
; entry:
;   %mtl.mask = alloca i32
;   %mtl.mask.first = call i32 @llvm.nvvm.activemask()
;   store i32 %mtl.mask.first, ptr %mtl.mask
;   %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
;   %is.few = icmp ult i32 %lane, 5
;   %mtl.stay.entry.before = load i32, ptr %mtl.mask
;   %mtl.stay.entry.vote = xor i1 %is.few, true
;   %mtl.stay.entry = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mtl.stay.entry.before, i1 %mtl.stay.entry.vote)
;   store i32 %mtl.stay.entry, ptr %mtl.mask
;   br i1 %is.few, label %mtl.leave, label %more
; more:
;   %m = load i32, ptr %mtl.mask
;   call void @mtl_use(i32 %m)
;   br label %out
; out:
;   br label %mtl.leave
; mtl.leave:
;   call void asm sideeffect "exit;", "~{memory}"()
;   unreachable
; }
