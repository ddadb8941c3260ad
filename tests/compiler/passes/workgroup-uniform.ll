; RUN: metalloid passes %s --pass workgroup-uniform
; The counter of a loop with a barrier is the same for all simdgroups of a threadgroup; %y is not.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %x, i32 %index) {
entry:
  %n = load i32, ptr %words, align 4, !invariant.load !{}
  %y = mul i32 %x, 3
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k.next, %after ]
  call void @__msl_threadgroup_barrier(i32 2)
  br label %after
after:
  store i32 %y, ptr %threadgroup_memory, align 4
  %k.next = add i32 %k, 1
  %goes.on = icmp ult i32 %k.next, %n
  br i1 %goes.on, label %loop, label %end
end:
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %x, i32 %index) {
; entry:
;   %n = load i32, ptr %words, align 4, !invariant.load !{}
;   %y = mul i32 %x, 3
;   br label %loop.pre
; loop:
;   %k = phi i32 [ 0, %loop.pre ], [ %k.next, %loop.latch ]
;   call void @__msl_threadgroup_barrier(i32 2)
;   br label %mtl.after1
; after:
;   store i32 %y, ptr %threadgroup_memory, align 4
;   %k.next = add i32 %k, 1
;   %goes.on = icmp ult i32 %k.next, %n
;   br i1 %goes.on, label %loop.latch, label %end
; end:
;   br label %mtl.exit
; mtl.after1:
;   br label %after
; mtl.exit:
;   ret void
; loop.pre:
;   br label %loop
; loop.latch:
;   br label %loop
; }
; ; uniform in the threadgroup: %n %k
