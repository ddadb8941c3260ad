; RUN: metalloid passes %s --device cuda --pass coarsen-threads
; One thread runs the threads of four threadgroups, and has four loads in flight.
define void @mtl_kernel(ptr %launch) {
entry:
  %g = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %t = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = mul i32 %g, 64
  %i = add i32 %first, %t
  %is.inside = icmp ult i32 %i, 1000
  br i1 %is.inside, label %do, label %out
do:
  %d = load ptr, ptr %launch
  %w = zext i32 %i to i64
  %p = getelementptr float, ptr %d, i64 %w
  %x = load float, ptr %p
  %y = fmul float %x, 2.0
  store float %y, ptr %p
  br label %out
out:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x() #1
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1
attributes #1 = { memory(none) }

; expect:
; define void @mtl_coarsened(ptr %launch) {
; mtl.entry:
;   %mtl.block = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
;   %mtl.first = mul i32 %mtl.block, 4
;   br label %entry
; entry:
;   %g = add i32 %mtl.first, 0
;   %g.thread1 = add i32 %mtl.first, 1
;   %g.thread2 = add i32 %mtl.first, 2
;   %g.thread3 = add i32 %mtl.first, 3
;   %t = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
;   %first = mul i32 %g, 64
;   %first.thread1 = mul i32 %g.thread1, 64
;   %first.thread2 = mul i32 %g.thread2, 64
;   %first.thread3 = mul i32 %g.thread3, 64
;   %i = add i32 %first, %t
;   %i.thread1 = add i32 %first.thread1, %t
;   %i.thread2 = add i32 %first.thread2, %t
;   %i.thread3 = add i32 %first.thread3, %t
;   %is.inside = icmp ult i32 %i, 1000
;   %is.inside.thread1 = icmp ult i32 %i.thread1, 1000
;   %is.inside.thread2 = icmp ult i32 %i.thread2, 1000
;   %is.inside.thread3 = icmp ult i32 %i.thread3, 1000
;   %entry.none.and = and i1 %is.inside, %is.inside.thread1
;   %entry.none.or = or i1 %is.inside, %is.inside.thread1
;   %entry.none.and.1 = and i1 %entry.none.and, %is.inside.thread2
;   %entry.none.or.1 = or i1 %entry.none.or, %is.inside.thread2
;   %entry.none.and.2 = and i1 %entry.none.and.1, %is.inside.thread3
;   %entry.none.or.2 = or i1 %entry.none.or.1, %is.inside.thread3
;   br i1 %entry.none.and.2, label %do, label %entry.none
; entry.none:
;   br i1 %entry.none.or.2, label %mtl.sequential, label %out
; do:
;   %d = load ptr, ptr %launch
;   %w = zext i32 %i to i64
;   %w.thread1 = zext i32 %i.thread1 to i64
;   %w.thread2 = zext i32 %i.thread2 to i64
;   %w.thread3 = zext i32 %i.thread3 to i64
;   %p = getelementptr float, ptr %d, i64 %w
;   %p.thread1 = getelementptr float, ptr %d, i64 %w.thread1
;   %p.thread2 = getelementptr float, ptr %d, i64 %w.thread2
;   %p.thread3 = getelementptr float, ptr %d, i64 %w.thread3
;   %x = load float, ptr %p
;   %x.thread1 = load float, ptr %p.thread1
;   %x.thread2 = load float, ptr %p.thread2
;   %x.thread3 = load float, ptr %p.thread3
;   %y = fmul float %x, 2.0
;   %y.thread1 = fmul float %x.thread1, 2.0
;   %y.thread2 = fmul float %x.thread2, 2.0
;   %y.thread3 = fmul float %x.thread3, 2.0
;   store float %y, ptr %p
;   store float %y.thread1, ptr %p.thread1
;   store float %y.thread2, ptr %p.thread2
;   store float %y.thread3, ptr %p.thread3
;   br label %out
; out:
;   ret void
; mtl.sequential:
;   %mtl.thread = phi i32 [ 0, %entry.none ], [ %mtl.thread.next, %mtl.next ]
;   br label %entry.sequential
; entry.sequential:
;   %g.sequential = add i32 %mtl.first, %mtl.thread
;   %t.sequential = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
;   %first.sequential = mul i32 %g.sequential, 64
;   %i.sequential = add i32 %first.sequential, %t.sequential
;   %is.inside.sequential = icmp ult i32 %i.sequential, 1000
;   br i1 %is.inside.sequential, label %do.sequential, label %out.sequential
; do.sequential:
;   %d.sequential = load ptr, ptr %launch
;   %w.sequential = zext i32 %i.sequential to i64
;   %p.sequential = getelementptr float, ptr %d.sequential, i64 %w.sequential
;   %x.sequential = load float, ptr %p.sequential
;   %y.sequential = fmul float %x.sequential, 2.0
;   store float %y.sequential, ptr %p.sequential
;   br label %out.sequential
; out.sequential:
;   br label %mtl.next
; mtl.next:
;   %mtl.thread.next = add i32 %mtl.thread, 1
;   %mtl.has_next = icmp ult i32 %mtl.thread.next, 4
;   br i1 %mtl.has_next, label %mtl.sequential, label %mtl.end
; mtl.end:
;   ret void
; }
; ; one thread runs 4 threads
