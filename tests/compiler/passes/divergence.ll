; RUN: metalloid passes %s --pass divergence
; Lanes are indices in %grid_x: the first branch is uniform, the second one divergent.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %n, i32 %index) {
entry:
  %is.small = icmp ult i32 %n, 8
  br i1 %is.small, label %end, label %large
large:
  %i = zext i32 %grid_x to i64
  %p = getelementptr i32, ptr %words, i64 %i
  %x = load i32, ptr %p, align 4
  %is.odd = trunc i32 %x to i1
  br i1 %is.odd, label %odd, label %join
odd:
  %tripled = mul i32 %x, 3
  br label %join
join:
  %y = phi i32 [ %n, %large ], [ %tripled, %odd ]
  store i32 %y, ptr %p, align 4
  br label %end
end:
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %n, i32 %index) {
; entry:
;   %is.small = icmp ult i32 %n, 8
;   br i1 %is.small, label %end, label %large
; large:
;   %i = zext i32 %grid_x to i64
;   %p = getelementptr i32, ptr %words, i64 %i
;   %x = load i32, ptr %p, align 4
;   %is.odd = trunc i32 %x to i1
;   br i1 %is.odd, label %odd, label %join
; odd:
;   %tripled = mul i32 %x, 3
;   br label %join
; join:
;   %y = phi i32 [ %n, %large ], [ %tripled, %odd ]
;   store i32 %y, ptr %p, align 4
;   br label %end
; end:
;   br label %mtl.exit
; mtl.exit:
;   ret void
; }
; ; uniform: %words %threadgroup_memory %n %is.small
; ; indexed: %grid_x %index %i %p
; ; varying: %x %is.odd %tripled %y
; ; divergent branches: %large
; ; masked blocks: %odd
