; RUN: metalloid passes %s --device cuda --pass warp-divergence
; Lanes below five execute %then, and stay in %loop for different numbers of iterations.
define void @mtl_kernel(ptr %launch) {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %is.few = icmp ult i32 %lane, 5
  br label %top
top:
  br i1 %is.few, label %then, label %join
then:
  %m = call i32 @llvm.nvvm.activemask()
  call void @mtl_use(i32 %m)
  br label %join
join:
  br label %loop
loop:
  %i = phi i32 [ %lane, %join ], [ %next, %loop ]
  %n = call i32 @llvm.nvvm.activemask()
  call void @mtl_use(i32 %n)
  %next = add i32 %i, 32
  %goes.on = icmp ult i32 %next, 99
  br i1 %goes.on, label %loop, label %last
last:
  br i1 %is.few, label %out, label %more
more:
  %o = call i32 @llvm.nvvm.activemask()
  call void @mtl_use(i32 %o)
  br label %out
out:
  ret void
}

; expect:
; define void @mtl_kernel(ptr %launch) {
; entry:
;   %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
;   %is.few = icmp ult i32 %lane, 5
;   br label %top
; top:
;   br i1 %is.few, label %then, label %join
; then:
;   %m = call i32 @llvm.nvvm.activemask()
;   call void @mtl_use(i32 %m)
;   br label %join
; join:
;   br label %loop
; loop:
;   %i = phi i32 [ %lane, %join ], [ %next, %loop ]
;   %n = call i32 @llvm.nvvm.activemask()
;   call void @mtl_use(i32 %n)
;   %next = add i32 %i, 32
;   %goes.on = icmp ult i32 %next, 99
;   br i1 %goes.on, label %loop, label %last
; last:
;   br i1 %is.few, label %out, label %more
; more:
;   %o = call i32 @llvm.nvvm.activemask()
;   call void @mtl_use(i32 %o)
;   br label %out
; out:
;   ret void
; }
; ; blocks that not all threads of a warp execute: %loop %then
; ; blocks for which other threads of the warp wait: %then
; ; divergent branches to a return: %last
; ; divergent loops: %loop
; ; threads of %then: those for which the branch of %top is true
; ; threads of %loop: those in the same iteration of %loop
