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
;   %grid_y.row1 = add i32 %grid_y, 1
;   %grid_y.row2 = add i32 %grid_y, 2
;   %grid_y.row3 = add i32 %grid_y, 3
;   br label %loop
; loop:
;   %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]
;   %sum = phi float [ 0.0, %entry ], [ %sum.next, %loop ]
;   %sum.row1 = phi float [ 0.0, %entry ], [ %sum.next.row1, %loop ]
;   %sum.row2 = phi float [ 0.0, %entry ], [ %sum.next.row2, %loop ]
;   %sum.row3 = phi float [ 0.0, %entry ], [ %sum.next.row3, %loop ]
;   %row = mul i32 %grid_y, %n
;   %row.row1 = mul i32 %grid_y.row1, %n
;   %row.row2 = mul i32 %grid_y.row2, %n
;   %row.row3 = mul i32 %grid_y.row3, %n
;   %i = add i32 %row, %k
;   %i.row1 = add i32 %row.row1, %k
;   %i.row2 = add i32 %row.row2, %k
;   %i.row3 = add i32 %row.row3, %k
;   %i.wide = zext i32 %i to i64
;   %i.wide.row1 = zext i32 %i.row1 to i64
;   %i.wide.row2 = zext i32 %i.row2 to i64
;   %i.wide.row3 = zext i32 %i.row3 to i64
;   %p = getelementptr float, ptr %words, i64 %i.wide
;   %p.row1 = getelementptr float, ptr %words, i64 %i.wide.row1
;   %p.row2 = getelementptr float, ptr %words, i64 %i.wide.row2
;   %p.row3 = getelementptr float, ptr %words, i64 %i.wide.row3
;   %a = load float, ptr %p, align 4
;   %a.row1 = load float, ptr %p.row1, align 4
;   %a.row2 = load float, ptr %p.row2, align 4
;   %a.row3 = load float, ptr %p.row3, align 4
;   %column = mul i32 %k, %n
;   %j = add i32 %column, %grid_x
;   %j.wide = zext i32 %j to i64
;   %q = getelementptr float, ptr %b, i64 %j.wide
;   %c = load float, ptr %q, align 4
;   %product = fmul float %a, %c
;   %product.row1 = fmul float %a.row1, %c
;   %product.row2 = fmul float %a.row2, %c
;   %product.row3 = fmul float %a.row3, %c
;   %sum.next = fadd float %sum, %product
;   %sum.next.row1 = fadd float %sum.row1, %product.row1
;   %sum.next.row2 = fadd float %sum.row2, %product.row2
;   %sum.next.row3 = fadd float %sum.row3, %product.row3
;   %k.next = add i32 %k, 1
;   %goes.on = icmp ult i32 %k.next, %n
;   br i1 %goes.on, label %loop, label %end
; end:
;   %r.row = mul i32 %grid_y, %n
;   %r.row.row1 = mul i32 %grid_y.row1, %n
;   %r.row.row2 = mul i32 %grid_y.row2, %n
;   %r.row.row3 = mul i32 %grid_y.row3, %n
;   %r.i = add i32 %r.row, %grid_x
;   %r.i.row1 = add i32 %r.row.row1, %grid_x
;   %r.i.row2 = add i32 %r.row.row2, %grid_x
;   %r.i.row3 = add i32 %r.row.row3, %grid_x
;   %r.wide = zext i32 %r.i to i64
;   %r.wide.row1 = zext i32 %r.i.row1 to i64
;   %r.wide.row2 = zext i32 %r.i.row2 to i64
;   %r.wide.row3 = zext i32 %r.i.row3 to i64
;   %r = getelementptr float, ptr %words, i64 %r.wide
;   %r.row1 = getelementptr float, ptr %words, i64 %r.wide.row1
;   %r.row2 = getelementptr float, ptr %words, i64 %r.wide.row2
;   %r.row3 = getelementptr float, ptr %words, i64 %r.wide.row3
;   store float %sum.next, ptr %r, align 4
;   store float %sum.next.row1, ptr %r.row1, align 4
;   store float %sum.next.row2, ptr %r.row2, align 4
;   store float %sum.next.row3, ptr %r.row3, align 4
;   ret void
; }
