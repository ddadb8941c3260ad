; RUN: metalloid passes %s --pass lower-assertions
; A branch to a failed assertion becomes an instruction, so the code after it needs no mask.
@text = private constant [4 x i8] c"x>0\00"
@file = private constant [4 x i8] c"a.m\00"

define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
entry:
  %i = zext i32 %grid_x to i64
  %p = getelementptr i32, ptr %words, i64 %i
  %x = load i32, ptr %p, align 4
  %holds = icmp sgt i32 %x, 0
  br i1 %holds, label %passed, label %failed
failed:
  call void @__msl_assertion_failed_in_thread(ptr @text, ptr @file, i32 7, i32 %index)
  unreachable
passed:
  store i32 0, ptr %p, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
; entry:
;   %i = zext i32 %grid_x to i64
;   %p = getelementptr i32, ptr %words, i64 %i
;   %x = load i32, ptr %p, align 4
;   %holds = icmp sgt i32 %x, 0
;   "mtl.assert"(i1 %holds, ptr @text, ptr @file, i32 7, i32 %index) : void
;   store i32 0, ptr %p, align 4
;   ret void
; }
