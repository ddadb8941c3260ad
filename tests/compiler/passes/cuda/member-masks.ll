; RUN: metalloid passes %s --device cuda --pass member-masks
; Those lanes are members in %then for which the branch of %top is taken: they vote before it.
define void @mtl_kernel(ptr %launch) {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %is.few = icmp ult i32 %lane, 5
  br label %top
top:
  br i1 %is.few, label %then, label %end
then:
  %m = call i32 @llvm.nvvm.activemask()
  call void @mtl_use(i32 %m)
  br label %end
end:
  %n = call i32 @llvm.nvvm.activemask()
  call void @mtl_use(i32 %n)
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
;   br label %top
; top:
;   %mtl.edge.top.before = load i32, ptr %mtl.mask
;   %mtl.edge.top.vote = xor i1 %is.few, false
;   %mtl.edge.top = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mtl.edge.top.before, i1 %mtl.edge.top.vote)
;   br i1 %is.few, label %then, label %end
; then:
;   %m = or i32 %mtl.edge.top, 0
;   call void @mtl_use(i32 %m)
;   br label %end
; end:
;   %n = load i32, ptr %mtl.mask
;   call void @mtl_use(i32 %n)
;   ret void
; mtl.leave:
;   call void asm sideeffect "exit;", "~{memory}"()
;   unreachable
; }
