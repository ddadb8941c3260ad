; RUN: metalloid passes %s --device cuda --pass full-warp-loops
; %loop.full_warp runs while all 32 lanes go on; %loop then runs the last iterations.
define void @mtl_kernel(ptr %launch) {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %lane, %entry ], [ %next, %loop ]
  %m = call i32 @llvm.nvvm.activemask()
  call void @mtl_use(i32 %m)
  %next = add i32 %i, 32
  %goes.on = icmp ult i32 %next, 99
  br i1 %goes.on, label %loop, label %end
end:
  %last = phi i32 [ %next, %loop ]
  call void @mtl_use(i32 %last)
  ret void
}

; expect:
; define void @mtl_kernel(ptr %launch) {
; entry:
;   %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
;   br label %loop.guard
; loop.guard:
;   %mtl.members = call i32 @llvm.nvvm.activemask()
;   %mtl.is_full = icmp eq i32 %mtl.members, -1
;   br i1 %mtl.is_full, label %loop.full_warp, label %loop
; loop.full_warp:
;   %i.full_warp = phi i32 [ %lane, %loop.guard ], [ %next.full_warp, %loop.full_warp ]
;   %m.full_warp = call i32 @llvm.nvvm.activemask()
;   call void @mtl_use(i32 %m.full_warp)
;   %next.full_warp = add i32 %i.full_warp, 32
;   %goes.on.full_warp = icmp ult i32 %next.full_warp, 99
;   %mtl.stays = xor i1 %goes.on.full_warp, false
;   %mtl.all_stay = call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 %mtl.stays)
;   br i1 %mtl.all_stay, label %loop.full_warp, label %loop.middle
; loop.middle:
;   br i1 %goes.on.full_warp, label %loop, label %end
; loop:
;   %i = phi i32 [ %lane, %loop.guard ], [ %next, %loop ], [ %next.full_warp, %loop.middle ]
;   %m = call i32 @llvm.nvvm.activemask()
;   call void @mtl_use(i32 %m)
;   %next = add i32 %i, 32
;   %goes.on = icmp ult i32 %next, 99
;   br i1 %goes.on, label %loop, label %end
; end:
;   %last = phi i32 [ %next, %loop ], [ %next.full_warp, %loop.middle ]
;   call void @mtl_use(i32 %last)
;   ret void
; }
