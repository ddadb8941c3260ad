; RUN: metalloid passes %s --pass simplify-loops
; One exit, no switches, and loops with a preheader and an empty latch.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %n, i32 %index) {
entry:
  switch i32 %n, label %loop [ i32 0, label %end i32 7, label %early ]
early:
  store i32 1, ptr %words, align 4
  ret void
loop:
  %i = phi i32 [ %n, %entry ], [ %less, %loop ], [ %half, %odd ]
  %less = sub i32 %i, 2
  %bit = and i32 %i, 1
  %is.odd = icmp ne i32 %bit, 0
  br i1 %is.odd, label %odd, label %loop
odd:
  %half = lshr i32 %i, 1
  %is.done = icmp ult i32 %half, 3
  br i1 %is.done, label %end, label %loop
end:
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %n, i32 %index) {
; entry:
;   %entry.is0 = icmp eq i32 %n, 0
;   br i1 %entry.is0, label %end, label %entry.case1
; early:
;   store i32 1, ptr %words, align 4
;   br label %mtl.exit
; loop:
;   %i = phi i32 [ %n, %loop.pre ], [ %"i%loop.latch", %loop.latch ]
;   %less = sub i32 %i, 2
;   %bit = and i32 %i, 1
;   %is.odd = icmp ne i32 %bit, 0
;   br i1 %is.odd, label %odd, label %loop.latch
; odd:
;   %half = lshr i32 %i, 1
;   %is.done = icmp ult i32 %half, 3
;   br i1 %is.done, label %end, label %loop.latch
; end:
;   br label %mtl.exit
; mtl.exit:
;   ret void
; entry.case1:
;   %entry.is1 = icmp eq i32 %n, 7
;   br i1 %entry.is1, label %early, label %loop.pre
; loop.pre:
;   br label %loop
; loop.latch:
;   %"i%loop.latch" = phi i32 [ %less, %loop ], [ %half, %odd ]
;   br label %loop
; }
