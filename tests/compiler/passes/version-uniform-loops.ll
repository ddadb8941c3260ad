; RUN: metalloid passes %s --pass version-uniform-loops
; A loop over indices gets a copy that runs while all lanes go on, without masks.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %x, i32 %n, i32 %index) {
entry:
  %enters = icmp ult i32 %x, %n
  br i1 %enters, label %loop, label %end
loop:
  %i = phi i32 [ %x, %entry ], [ %i.next, %loop ]
  %i.wide = zext i32 %i to i64
  %p = getelementptr float, ptr %words, i64 %i.wide
  store float 0.0, ptr %p, align 4
  %i.next = add nuw i32 %i, 256
  %goes.on = icmp ult i32 %i.next, %n
  br i1 %goes.on, label %loop, label %end
end:
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %x, i32 %n, i32 %index) {
; entry:
;   %enters = icmp ult i32 %x, %n
;   %entry.all = call i1 @mtl.all_pass(i1 %enters)
;   br i1 %entry.all, label %loop.uniform, label %loop.guard
; loop:
;   %i = phi i32 [ %i.ph, %loop.ph ], [ %i.next, %loop ]
;   %i.wide = zext i32 %i to i64
;   %p = getelementptr float, ptr %words, i64 %i.wide
;   store float 0.0, ptr %p, align 4
;   %i.next = add nuw i32 %i, 256
;   %goes.on = icmp ult i32 %i.next, %n
;   br i1 %goes.on, label %loop, label %end
; end:
;   ret void
; loop.uniform:
;   %i.uniform = phi i32 [ %x, %entry ], [ %i.next.uniform, %loop.uniform ]
;   %i.wide.uniform = zext i32 %i.uniform to i64
;   %p.uniform = getelementptr float, ptr %words, i64 %i.wide.uniform
;   store float 0.0, ptr %p.uniform, align 4
;   %i.next.uniform = add nuw i32 %i.uniform, 256
;   %goes.on.uniform = icmp ult i32 %i.next.uniform, %n
;   %loop.uniform.done = call i1 @mtl.none_passes(i1 %goes.on.uniform)
;   %loop.uniform.all = call i1 @mtl.all_pass(i1 %goes.on.uniform)
;   br i1 %loop.uniform.all, label %loop.uniform, label %loop.middle
; loop.divergent:
;   br i1 %goes.on.uniform, label %loop.ph, label %end
; loop.middle:
;   br i1 %loop.uniform.done, label %end, label %loop.divergent
; loop.guard:
;   br i1 %enters, label %loop.ph, label %end
; loop.ph:
;   %i.ph = phi i32 [ %x, %loop.guard ], [ %i.next.uniform, %loop.divergent ]
;   br label %loop
; }
