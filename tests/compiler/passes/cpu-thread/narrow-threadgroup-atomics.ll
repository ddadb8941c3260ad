; RUN: metalloid passes %s --device cpu-thread --pass narrow-threadgroup-atomics
; Address space 3 is threadgroup memory.
define i32 @f(ptr addrspace(3) %tile, ptr addrspace(5) %device) {
entry:
  %a = atomicrmw add ptr addrspace(3) %tile, i32 1 monotonic, align 4
  %b = atomicrmw add ptr addrspace(5) %device, i32 1 monotonic, align 4
  %c = add i32 %a, %b
  ret i32 %c
}

; expect:
; define i32 @f(ptr addrspace(3) %tile, ptr addrspace(5) %device) {
; entry:
;   %a = atomicrmw add ptr addrspace(3) %tile, i32 1 syncscope("singlethread") monotonic, align 4
;   %b = atomicrmw add ptr addrspace(5) %device, i32 1 monotonic, align 4
;   %c = add i32 %a, %b
;   ret i32 %c
; }
