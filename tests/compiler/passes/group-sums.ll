; RUN: metalloid passes %s --pass group-sums
; Additions to adjacent elements of each lane are one group, and so are those to addresses of all lanes.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
entry:
  %i = zext i32 %grid_x to i64
  %k = shl nuw nsw i64 %i, 1
  %next = or disjoint i64 %k, 1
  %p = getelementptr float, ptr %words, i64 %k
  %q = getelementptr float, ptr %words, i64 %next
  %end = getelementptr i8, ptr %words, i64 64
  %x = load float, ptr %threadgroup_memory, align 4
  %1 = atomicrmw fadd ptr %q, float %x syncscope("singlethread") monotonic, align 4
  %2 = atomicrmw fadd ptr %words, float %x syncscope("singlethread") monotonic, align 4
  %3 = atomicrmw fadd ptr %p, float %x syncscope("singlethread") monotonic, align 4
  %4 = atomicrmw fadd ptr %end, float %x syncscope("singlethread") monotonic, align 4
  %5 = atomicrmw fadd ptr %q, float %x syncscope("singlethread") monotonic, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
; entry:
;   %i = zext i32 %grid_x to i64
;   %k = shl nuw nsw i64 %i, 1
;   %next = or disjoint i64 %k, 1
;   %p = getelementptr float, ptr %words, i64 %k
;   %q = getelementptr float, ptr %words, i64 %next
;   %end = getelementptr i8, ptr %words, i64 64
;   %x = load float, ptr %threadgroup_memory, align 4
;   %1 = atomicrmw fadd ptr %q, float %x syncscope("singlethread") monotonic, align 4
;   %2 = atomicrmw fadd ptr %words, float %x syncscope("singlethread") monotonic, align 4
;   %3 = atomicrmw fadd ptr %p, float %x syncscope("singlethread") monotonic, align 4
;   %4 = atomicrmw fadd ptr %end, float %x syncscope("singlethread") monotonic, align 4
;   %5 = atomicrmw fadd ptr %q, float %x syncscope("singlethread") monotonic, align 4
;   br label %mtl.exit
; mtl.exit:
;   ret void
; }
; ; uniform: %words %threadgroup_memory %end %x
; ; indexed: %grid_x %index %i %k %next %p %q
; ; varying: %1 %2 %3 %4 %5
; ; additions to addresses 0 bytes apart: %2, %4
; ; additions to addresses 8 bytes apart: %3, %1 %5
