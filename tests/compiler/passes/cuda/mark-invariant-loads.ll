; RUN: metalloid passes %s --device cuda --pass mark-invariant-loads --words 2 --constant 1
; %c is the second word, which points to constant memory; %d points to device memory.
define void @mtl_kernel(ptr %launch) {
entry:
  %word = getelementptr i8, ptr %launch, i64 8
  %c = load ptr, ptr %word
  %d = load ptr, ptr %launch
  %g = addrspacecast ptr %c to ptr addrspace(1)
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr addrspace(1) %g, i64 %k
  %marked = load i32, ptr addrspace(1) %p
  %written = load i32, ptr %d
  %volatile = load volatile i32, ptr %c
  %atomic = load atomic i32, ptr %c monotonic, align 4
  %next = add i64 %k, 1
  %goes.on = icmp ult i64 %next, 9
  br i1 %goes.on, label %loop, label %end
end:
  ret void
}

; expect:
; define void @mtl_kernel(ptr %launch) {
; entry:
;   %word = getelementptr i8, ptr %launch, i64 8
;   %c = load ptr, ptr %word
;   %d = load ptr, ptr %launch
;   %g = addrspacecast ptr %c to ptr addrspace(1)
;   br label %loop
; loop:
;   %k = phi i64 [ 0, %entry ], [ %next, %loop ]
;   %p = getelementptr i32, ptr addrspace(1) %g, i64 %k
;   %marked = load i32, ptr addrspace(1) %p, !invariant.load !{}
;   %written = load i32, ptr %d
;   %volatile = load volatile i32, ptr %c
;   %atomic = load atomic i32, ptr %c monotonic, align 4
;   %next = add i64 %k, 1
;   %goes.on = icmp ult i64 %next, 9
;   br i1 %goes.on, label %loop, label %end
; end:
;   ret void
; }
