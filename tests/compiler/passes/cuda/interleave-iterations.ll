; RUN: metalloid passes %s --device cuda --pass interleave-iterations
; Four iterations at a time, and those that are left as before.
define void @mtl_kernel(ptr %launch) {
entry:
  %gx = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %lane = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %d = load ptr, ptr %launch
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %w.32 = add i32 %k, %lane
  %w = zext i32 %w.32 to i64
  %p = getelementptr float, ptr %d, i64 %w
  %y = uitofp i32 %k to float
  %old = atomicrmw volatile fadd ptr %p, float %y monotonic, align 4
  %next = add i32 %k, 1
  %is.done = icmp eq i32 %next, %gx
  br i1 %is.done, label %out, label %loop
out:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x() #1
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1
attributes #1 = { memory(none) }

; expect:
; define void @mtl_kernel(ptr %launch) {
; entry:
;   %gx = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
;   %lane = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
;   %d = load ptr, ptr %launch
;   br label %loop.guard
; loop.guard:
;   %mtl.left = sub i32 %gx, 0
;   %mtl.has_more = icmp uge i32 %mtl.left, 4
;   br i1 %mtl.has_more, label %loop.wide, label %loop
; loop.wide:
;   %mtl.iteration = phi i32 [ 0, %loop.guard ], [ %mtl.iteration.next, %loop.wide ]
;   %k.wide = add i32 %mtl.iteration, 0
;   %k.wide.thread1 = add i32 %mtl.iteration, 1
;   %k.wide.thread2 = add i32 %mtl.iteration, 2
;   %k.wide.thread3 = add i32 %mtl.iteration, 3
;   %w.32.wide = add i32 %k.wide, %lane
;   %w.32.wide.thread1 = add i32 %k.wide.thread1, %lane
;   %w.32.wide.thread2 = add i32 %k.wide.thread2, %lane
;   %w.32.wide.thread3 = add i32 %k.wide.thread3, %lane
;   %w.wide = zext i32 %w.32.wide to i64
;   %w.wide.thread1 = zext i32 %w.32.wide.thread1 to i64
;   %w.wide.thread2 = zext i32 %w.32.wide.thread2 to i64
;   %w.wide.thread3 = zext i32 %w.32.wide.thread3 to i64
;   %p.wide = getelementptr float, ptr %d, i64 %w.wide
;   %p.wide.thread1 = getelementptr float, ptr %d, i64 %w.wide.thread1
;   %p.wide.thread2 = getelementptr float, ptr %d, i64 %w.wide.thread2
;   %p.wide.thread3 = getelementptr float, ptr %d, i64 %w.wide.thread3
;   %y.wide = uitofp i32 %k.wide to float
;   %y.wide.thread1 = uitofp i32 %k.wide.thread1 to float
;   %y.wide.thread2 = uitofp i32 %k.wide.thread2 to float
;   %y.wide.thread3 = uitofp i32 %k.wide.thread3 to float
;   %old.wide = atomicrmw volatile fadd ptr %p.wide, float %y.wide monotonic, align 4
;   %old.wide.thread1 = atomicrmw volatile fadd ptr %p.wide.thread1, float %y.wide.thread1 monotonic, align 4
;   %old.wide.thread2 = atomicrmw volatile fadd ptr %p.wide.thread2, float %y.wide.thread2 monotonic, align 4
;   %old.wide.thread3 = atomicrmw volatile fadd ptr %p.wide.thread3, float %y.wide.thread3 monotonic, align 4
;   %next.wide = add i32 %k.wide, 1
;   %next.wide.thread1 = add i32 %k.wide.thread1, 1
;   %next.wide.thread2 = add i32 %k.wide.thread2, 1
;   %next.wide.thread3 = add i32 %k.wide.thread3, 1
;   %is.done.wide = icmp eq i32 %next.wide, %gx
;   %is.done.wide.thread1 = icmp eq i32 %next.wide.thread1, %gx
;   %is.done.wide.thread2 = icmp eq i32 %next.wide.thread2, %gx
;   %is.done.wide.thread3 = icmp eq i32 %next.wide.thread3, %gx
;   %mtl.iteration.next = add i32 %mtl.iteration, 4
;   %mtl.left.1 = sub i32 %gx, %mtl.iteration.next
;   %mtl.has_more.1 = icmp uge i32 %mtl.left.1, 4
;   br i1 %mtl.has_more.1, label %loop.wide, label %loop.rest
; loop.rest:
;   %mtl.done = icmp eq i32 %mtl.iteration.next, %gx
;   br i1 %mtl.done, label %out, label %loop
; loop:
;   %k = phi i32 [ 0, %loop.guard ], [ %next, %loop ], [ %mtl.iteration.next, %loop.rest ]
;   %w.32 = add i32 %k, %lane
;   %w = zext i32 %w.32 to i64
;   %p = getelementptr float, ptr %d, i64 %w
;   %y = uitofp i32 %k to float
;   %old = atomicrmw volatile fadd ptr %p, float %y monotonic, align 4
;   %next = add i32 %k, 1
;   %is.done = icmp eq i32 %next, %gx
;   br i1 %is.done, label %out, label %loop
; out:
;   ret void
; }
