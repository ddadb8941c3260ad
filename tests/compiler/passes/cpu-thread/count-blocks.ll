; RUN: metalloid passes %s --device cpu-thread --pass count-blocks
; Each block has a number; allocations stay before the call.

define void @f(ptr %out, i1 %is_first) {
entry:
  %private = alloca i32, align 4
  br i1 %is_first, label %first, label %end

first:
  store i32 1, ptr %out, align 4
  br label %end

end:
  %v = phi i32 [ 0, %entry ], [ 1, %first ]
  store i32 %v, ptr %private, align 4
  ret void
}

; expect:
; define void @f(ptr %out, i1 %is_first) {
; entry:
;   %private = alloca i32, align 4
;   call void @mtl_count(i32 0)
;   br i1 %is_first, label %first, label %end
; first:
;   call void @mtl_count(i32 1)
;   store i32 1, ptr %out, align 4
;   br label %end
; end:
;   %v = phi i32 [ 0, %entry ], [ 1, %first ]
;   call void @mtl_count(i32 2)
;   store i32 %v, ptr %private, align 4
;   ret void
; }
