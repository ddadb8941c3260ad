; RUN: metalloid passes %s --device cuda --pass assume-uniform-grid
; One word, and 36 bytes: launch_data says there whether all threadgroups have the same size.
define void @mtl_kernel(ptr %launch) {
entry:
  %p.uniform = getelementptr i8, ptr %launch, i64 44
  %is.uniform = load i32, ptr %p.uniform
  %is.tail = icmp eq i32 %is.uniform, 0
  br i1 %is.tail, label %tail, label %body
tail:
  call void @mtl_use(i32 0)
  br label %body
body:
  %size = phi i32 [ 1, %tail ], [ 2, %entry ]
  call void @mtl_use(i32 %size)
  ret void
}

; expect:
; define void @mtl_kernel(ptr %launch) {
; entry:
;   %p.uniform = getelementptr i8, ptr %launch, i64 44
;   %is.uniform = load i32, ptr %p.uniform
;   %is.tail = icmp eq i32 %is.uniform, 0
;   br label %body
; body:
;   %size = phi i32 [ 2, %entry ]
;   call void @mtl_use(i32 %size)
;   ret void
; }
