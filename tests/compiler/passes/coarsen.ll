; RUN: metalloid passes %s --pass coarsen
; A product of matrices: four rows share the loads of %b, which are the same for all of them.
define void @mtl_thread(ptr %words, ptr %b, ptr %threadgroup_memory, i32 %grid_x, i32 %grid_y, i32 %n, i32 %index) {
entry:
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %sum.next, %loop ]
  %row = mul i32 %grid_y, %n
  %i = add i32 %row, %k
  %i.wide = zext i32 %i to i64
  %p = getelementptr float, ptr %words, i64 %i.wide
  %a = load float, ptr %p, align 4
  %column = mul i32 %k, %n
  %j = add i32 %column, %grid_x
  %j.wide = zext i32 %j to i64
  %q = getelementptr float, ptr %b, i64 %j.wide
  %c = load float, ptr %q, align 4
  %product = fmul float %a, %c
  %sum.next = fadd float %sum, %product
  %k.next = add i32 %k, 1
  %goes.on = icmp ult i32 %k.next, %n
  br i1 %goes.on, label %loop, label %end
end:
  %r.row = mul i32 %grid_y, %n
  %r.i = add i32 %r.row, %grid_x
  %r.wide = zext i32 %r.i to i64
  %r = getelementptr float, ptr %words, i64 %r.wide
  store float %sum.next, ptr %r, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %b, ptr %threadgroup_memory, i32 %grid_x, i32 %grid_y, i32 %n, i32 %index) {
; entry:
;   %grid_y.thread1 = add i32 %grid_y, 1
;   %grid_y.thread2 = add i32 %grid_y, 2
;   %grid_y.thread3 = add i32 %grid_y, 3
;   br label %loop
; loop:
;   %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]
;   %sum = phi float [ 0.0, %entry ], [ %sum.next, %loop ]
;   %sum.thread1 = phi float [ 0.0, %entry ], [ %sum.next.thread1, %loop ]
;   %sum.thread2 = phi float [ 0.0, %entry ], [ %sum.next.thread2, %loop ]
;   %sum.thread3 = phi float [ 0.0, %entry ], [ %sum.next.thread3, %loop ]
;   %row = mul i32 %grid_y, %n
;   %row.thread1 = mul i32 %grid_y.thread1, %n
;   %row.thread2 = mul i32 %grid_y.thread2, %n
;   %row.thread3 = mul i32 %grid_y.thread3, %n
;   %i = add i32 %row, %k
;   %i.thread1 = add i32 %row.thread1, %k
;   %i.thread2 = add i32 %row.thread2, %k
;   %i.thread3 = add i32 %row.thread3, %k
;   %i.wide = zext i32 %i to i64
;   %i.wide.thread1 = zext i32 %i.thread1 to i64
;   %i.wide.thread2 = zext i32 %i.thread2 to i64
;   %i.wide.thread3 = zext i32 %i.thread3 to i64
;   %p = getelementptr float, ptr %words, i64 %i.wide
;   %p.thread1 = getelementptr float, ptr %words, i64 %i.wide.thread1
;   %p.thread2 = getelementptr float, ptr %words, i64 %i.wide.thread2
;   %p.thread3 = getelementptr float, ptr %words, i64 %i.wide.thread3
;   %a = load float, ptr %p, align 4
;   %a.thread1 = load float, ptr %p.thread1, align 4
;   %a.thread2 = load float, ptr %p.thread2, align 4
;   %a.thread3 = load float, ptr %p.thread3, align 4
;   %column = mul i32 %k, %n
;   %j = add i32 %column, %grid_x
;   %j.wide = zext i32 %j to i64
;   %q = getelementptr float, ptr %b, i64 %j.wide
;   %c = load float, ptr %q, align 4
;   %product = fmul float %a, %c
;   %product.thread1 = fmul float %a.thread1, %c
;   %product.thread2 = fmul float %a.thread2, %c
;   %product.thread3 = fmul float %a.thread3, %c
;   %sum.next = fadd float %sum, %product
;   %sum.next.thread1 = fadd float %sum.thread1, %product.thread1
;   %sum.next.thread2 = fadd float %sum.thread2, %product.thread2
;   %sum.next.thread3 = fadd float %sum.thread3, %product.thread3
;   %k.next = add i32 %k, 1
;   %goes.on = icmp ult i32 %k.next, %n
;   br i1 %goes.on, label %loop, label %end
; end:
;   %r.row = mul i32 %grid_y, %n
;   %r.row.thread1 = mul i32 %grid_y.thread1, %n
;   %r.row.thread2 = mul i32 %grid_y.thread2, %n
;   %r.row.thread3 = mul i32 %grid_y.thread3, %n
;   %r.i = add i32 %r.row, %grid_x
;   %r.i.thread1 = add i32 %r.row.thread1, %grid_x
;   %r.i.thread2 = add i32 %r.row.thread2, %grid_x
;   %r.i.thread3 = add i32 %r.row.thread3, %grid_x
;   %r.wide = zext i32 %r.i to i64
;   %r.wide.thread1 = zext i32 %r.i.thread1 to i64
;   %r.wide.thread2 = zext i32 %r.i.thread2 to i64
;   %r.wide.thread3 = zext i32 %r.i.thread3 to i64
;   %r = getelementptr float, ptr %words, i64 %r.wide
;   %r.thread1 = getelementptr float, ptr %words, i64 %r.wide.thread1
;   %r.thread2 = getelementptr float, ptr %words, i64 %r.wide.thread2
;   %r.thread3 = getelementptr float, ptr %words, i64 %r.wide.thread3
;   store float %sum.next, ptr %r, align 4
;   store float %sum.next.thread1, ptr %r.thread1, align 4
;   store float %sum.next.thread2, ptr %r.thread2, align 4
;   store float %sum.next.thread3, ptr %r.thread3, align 4
;   ret void
; }
