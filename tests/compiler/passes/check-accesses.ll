; RUN: metalloid passes %s --pass check-accesses --words 2
; A comparison with a limit, which is computed once, and a block that reports the site.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
entry:
  %p = load ptr, ptr %words, align 8
  %i = zext i32 %grid_x to i64
  %a = getelementptr float, ptr %p, i64 %i
  %b = getelementptr i8, ptr %a, i64 4
  %x = load float, ptr %a, align 4
  %y = load float, ptr %b, align 4
  %s = fadd float %x, %y
  store float %s, ptr %a, align 4
  %t = getelementptr float, ptr %p, i64 9
  store float %s, ptr %t, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
; entry:
;   %mtl.extent.at = getelementptr i8, ptr %words, i64 16
;   %mtl.extent = load i64, ptr %mtl.extent.at, align 8
;   %mtl.check = sub i64 %mtl.extent, 8
;   %mtl.check.1 = lshr i64 %mtl.check, 2
;   %mtl.check.2 = add i64 %mtl.check.1, 1
;   %mtl.check.3 = icmp uge i64 %mtl.extent, 8
;   %mtl.check.4 = select i1 %mtl.check.3, i64 %mtl.check.2, i64 0
;   %mtl.check.5 = icmp ult i64 %mtl.check.4, 4294967295
;   %mtl.check.6 = select i1 %mtl.check.5, i64 %mtl.check.4, i64 4294967295
;   %mtl.check.7 = trunc i64 %mtl.check.6 to i32
;   %mtl.check.9 = sub i64 %mtl.extent, 40
;   %mtl.check.10 = add i64 %mtl.check.9, 1
;   %mtl.check.11 = icmp uge i64 %mtl.extent, 40
;   %mtl.check.12 = select i1 %mtl.check.11, i64 %mtl.check.10, i64 0
;   %p = load ptr, ptr %words, align 8
;   %i = zext i32 %grid_x to i64
;   %a = getelementptr float, ptr %p, i64 %i
;   %b = getelementptr i8, ptr %a, i64 4
;   %mtl.check.8 = icmp ult i32 %grid_x, %mtl.check.7
;   %mtl.offset = mul i64 %i, 4
;   br i1 %mtl.check.8, label %entry.inside, label %mtl.outside
; entry.inside:
;   %x = load float, ptr %a, align 4
;   %y = load float, ptr %b, align 4
;   %s = fadd float %x, %y
;   store float %s, ptr %a, align 4
;   %t = getelementptr float, ptr %p, i64 9
;   %mtl.check.13 = icmp ult i64 0, %mtl.check.12
;   br i1 %mtl.check.13, label %entry.inside.1, label %mtl.outside
; entry.inside.1:
;   store float %s, ptr %t, align 4
;   ret void
; mtl.outside:
;   %mtl.site = phi i32 [ 0, %entry ], [ 1, %entry.inside ]
;   %mtl.outside.offset = phi i64 [ %mtl.offset, %entry ], [ 0, %entry.inside ]
;   %mtl.outside.extent = phi i64 [ %mtl.extent, %entry ], [ %mtl.extent, %entry.inside ]
;   call void @__msl_outside(i32 %mtl.site, i64 %mtl.outside.offset, i64 %mtl.outside.extent)
;   unreachable
; }
; ; site 0: bytes 0 to 8 + 4 * %i of word 0
; ; site 1: bytes 36 to 40 of word 0
