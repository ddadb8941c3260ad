; RUN: metalloid passes %s --device cpu-thread --pass mark-constant-loads
; Address space 1 is `constant`.
define i32 @f(ptr addrspace(1) %c, ptr addrspace(5) %d) {
entry:
  %x = load i32, ptr addrspace(1) %c, align 4
  store i32 7, ptr addrspace(5) %d, align 4
  %y = load i32, ptr addrspace(5) %d, align 4
  %z = add i32 %x, %y
  ret i32 %z
}

; expect:
; define i32 @f(ptr addrspace(1) %c, ptr addrspace(5) %d) {
; entry:
;   %x = load i32, ptr addrspace(1) %c, align 4, !invariant.load !{}
;   store i32 7, ptr addrspace(5) %d, align 4
;   %y = load i32, ptr addrspace(5) %d, align 4
;   %z = add i32 %x, %y
;   ret i32 %z
; }
