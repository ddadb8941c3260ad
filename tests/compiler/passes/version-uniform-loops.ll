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
;   br i1 %entry.all, label %loop.together, label %loop.guard
; loop:
;   %i = phi i32 [ %i.enter, %loop.enter ], [ %i.next, %loop ]
;   %i.wide = zext i32 %i to i64
;   %p = getelementptr float, ptr %words, i64 %i.wide
;   store float 0.0, ptr %p, align 4
;   %i.next = add nuw i32 %i, 256
;   %goes.on = icmp ult i32 %i.next, %n
;   br i1 %goes.on, label %loop, label %end
; end:
;   ret void
; loop.together:
;   %i.together = phi i32 [ %x, %entry ], [ %i.next.together, %loop.together ]
;   %i.wide.together = zext i32 %i.together to i64
;   %p.together = getelementptr float, ptr %words, i64 %i.wide.together
;   store float 0.0, ptr %p.together, align 4
;   %i.next.together = add nuw i32 %i.together, 256
;   %goes.on.together = icmp ult i32 %i.next.together, %n
;   %loop.together.done = call i1 @mtl.none_passes(i1 %goes.on.together)
;   %loop.together.all = call i1 @mtl.all_pass(i1 %goes.on.together)
;   br i1 %loop.together.all, label %loop.together, label %loop.between
; loop.parted:
;   br i1 %goes.on.together, label %loop.enter, label %end
; loop.between:
;   br i1 %loop.together.done, label %end, label %loop.parted
; loop.guard:
;   br i1 %enters, label %loop.enter, label %end
; loop.enter:
;   %i.enter = phi i32 [ %x, %loop.guard ], [ %i.next.together, %loop.parted ]
;   br label %loop
; }
