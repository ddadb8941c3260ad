; RUN: metalloid passes %s --device cuda --pass coarsen-reductions
; One thread runs the threads of four threadgroups in y, and adds one sum.
define void @mtl_kernel(ptr %launch) {
entry:
  %mask = alloca i32
  %gx = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %gy = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %g.x = insertelement <2 x i32> poison, i32 %gx, i64 0
  %g = insertelement <2 x i32> %g.x, i32 %gy, i64 1
  %lane = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  store i32 -1, ptr %mask
  %row = extractelement <2 x i32> %g, i64 1
  %column = extractelement <2 x i32> %g, i64 0
  %x = uitofp i32 %row to float
  %d = load ptr, ptr %launch
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %m = load i32, ptr %mask
  %bits = bitcast float %x to i32
  %other = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %m, i32 %bits, i32 %k, i32 31)
  %y = bitcast i32 %other to float
  %w.32 = add i32 %k, %lane
  %w = zext i32 %w.32 to i64
  %p = getelementptr float, ptr %d, i64 %w
  %old = atomicrmw volatile fadd ptr %p, float %y monotonic, align 4
  %next = add i32 %k, %column
  %is.done = icmp ugt i32 %next, 99
  br i1 %is.done, label %out, label %loop
out:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x() #1
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y() #1
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32) #2
attributes #1 = { memory(none) }
attributes #2 = { convergent }

; expect:
; define void @mtl_coarsened(ptr %launch) {
; mtl.entry:
;   %mask = alloca i32
;   %mtl.block = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
;   %mtl.first = mul i32 %mtl.block, 4
;   br label %entry
; entry:
;   %gx = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
;   %gy = add i32 %mtl.first, 0
;   %gy.thread1 = add i32 %mtl.first, 1
;   %gy.thread2 = add i32 %mtl.first, 2
;   %gy.thread3 = add i32 %mtl.first, 3
;   %lane = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
;   store i32 -1, ptr %mask
;   %x = uitofp i32 %gy to float
;   %x.thread1 = uitofp i32 %gy.thread1 to float
;   %x.thread2 = uitofp i32 %gy.thread2 to float
;   %x.thread3 = uitofp i32 %gy.thread3 to float
;   %d = load ptr, ptr %launch
;   br label %loop
; loop:
;   %k = phi i32 [ 0, %entry ], [ %next, %loop ]
;   %m = load i32, ptr %mask
;   %bits = bitcast float %x to i32
;   %bits.thread1 = bitcast float %x.thread1 to i32
;   %bits.thread2 = bitcast float %x.thread2 to i32
;   %bits.thread3 = bitcast float %x.thread3 to i32
;   %other = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %m, i32 %bits, i32 %k, i32 31)
;   %other.thread1 = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %m, i32 %bits.thread1, i32 %k, i32 31)
;   %other.thread2 = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %m, i32 %bits.thread2, i32 %k, i32 31)
;   %other.thread3 = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %m, i32 %bits.thread3, i32 %k, i32 31)
;   %y = bitcast i32 %other to float
;   %y.thread1 = bitcast i32 %other.thread1 to float
;   %y.thread2 = bitcast i32 %other.thread2 to float
;   %y.thread3 = bitcast i32 %other.thread3 to float
;   %w.32 = add i32 %k, %lane
;   %w = zext i32 %w.32 to i64
;   %p = getelementptr float, ptr %d, i64 %w
;   %mtl.sum = fadd float %y, %y.thread1
;   %mtl.sum.1 = fadd float %mtl.sum, %y.thread2
;   %mtl.sum.2 = fadd float %mtl.sum.1, %y.thread3
;   %old = atomicrmw volatile fadd ptr %p, float %mtl.sum.2 monotonic, align 4
;   %next = add i32 %k, %gx
;   %is.done = icmp ugt i32 %next, 99
;   br i1 %is.done, label %out, label %loop
; out:
;   ret void
; }
; ; one thread runs 4 threads
