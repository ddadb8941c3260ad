; RUN: metalloid passes %s --device cuda --pass member-masks
; The barrier in %then is for its members only; all threads wait at that in %end.
define void @mtl_kernel(ptr %launch) {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @mtl_open_divergent_barrier(i32 1)
  %is.few = icmp ult i32 %lane, 5
  br label %top
top:
  br i1 %is.few, label %then, label %end
then:
  call void @llvm.nvvm.barrier.cta.sync.all(i32 0)
  br label %end
end:
  call void @llvm.nvvm.barrier.cta.sync.all(i32 0)
  ret void
}

; expect:
; define void @mtl_kernel(ptr %launch) {
; entry:
;   %mtl.mask = alloca i32
;   %mtl.mask.first = call i32 @llvm.nvvm.activemask()
;   store i32 %mtl.mask.first, ptr %mtl.mask
;   %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
;   call void @mtl_open_divergent_barrier(i32 1)
;   %is.few = icmp ult i32 %lane, 5
;   br label %top
; top:
;   %mtl.edge.top.before = load i32, ptr %mtl.mask
;   %mtl.edge.top.vote = xor i1 %is.few, false
;   %mtl.edge.top = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mtl.edge.top.before, i1 %mtl.edge.top.vote)
;   br i1 %is.few, label %then, label %end
; then:
;   %mtl.members = or i32 %mtl.edge.top, 0
;   call void @mtl_divergent_barrier(i32 %mtl.members)
;   br label %end
; end:
;   call void @llvm.nvvm.barrier.cta.sync.all(i32 0)
;   call void @mtl_leave_divergent_barrier()
;   ret void
; mtl.leave:
;   call void @mtl_leave_divergent_barrier()
;   call void asm sideeffect "exit;", "~{memory}"()
;   unreachable
; }
