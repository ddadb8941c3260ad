; RUN: metalloid passes %s --pass demote-private-atomics
; Atomic loads and stores of one thread of the system become plain; updates stay as they are.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %index) {
entry:
  %p = getelementptr i8, ptr %threadgroup_memory, i64 -64
  %x = load atomic i32, ptr %p syncscope("singlethread") monotonic, align 4
  store atomic i32 %x, ptr %words syncscope("singlethread") monotonic, align 4
  %y = load atomic i32, ptr %words monotonic, align 4
  %old = atomicrmw add ptr %p, i32 %y syncscope("singlethread") monotonic, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %index) {
; entry:
;   %p = getelementptr i8, ptr %threadgroup_memory, i64 -64
;   %x = load i32, ptr %p, align 4
;   store i32 %x, ptr %words, align 4
;   %y = load atomic i32, ptr %words monotonic, align 4
;   %old = atomicrmw add ptr %p, i32 %y syncscope("singlethread") monotonic, align 4
;   ret void
; }
