; RUN: metalloid passes %s --pass scalarize-vectors
; A choice between structs becomes a choice for each member; a member may be a vector.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
entry:
  %x = load double, ptr %words, align 8
  %v = load <2 x float>, ptr %words, align 8
  %is_first = icmp eq i32 %index, 0
  br i1 %is_first, label %first, label %end
first:
  %one = insertvalue { double, <2 x float> } poison, double %x, 0
  %both = insertvalue { double, <2 x float> } %one, <2 x float> %v, 1
  br label %end
end:
  %pair = phi { double, <2 x float> } [ %both, %first ], [ { double 1.000000e+00, <2 x float> zeroinitializer }, %entry ]
  %chosen = select i1 %is_first, { double, <2 x float> } %pair, { double, <2 x float> } zeroinitializer
  %scalar = extractvalue { double, <2 x float> } %chosen, 0
  %vector = extractvalue { double, <2 x float> } %chosen, 1
  store double %scalar, ptr %words, align 8
  store <2 x float> %vector, ptr %words, align 8
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
; entry:
;   %x = load double, ptr %words, align 8
;   %"~1" = getelementptr i8, ptr %words, i64 4
;   %"v~0" = load float, ptr %words, align 8
;   %"v~1" = load float, ptr %"~1", align 4
;   %is_first = icmp eq i32 %index, 0
;   br i1 %is_first, label %first, label %end
; first:
;   br label %end
; end:
;   %"pair~0" = phi double [ %x, %first ], [ 1.000000e+00, %entry ]
;   %"pair~1" = phi float [ %"v~0", %first ], [ 0.0, %entry ]
;   %"pair~2" = phi float [ %"v~1", %first ], [ 0.0, %entry ]
;   %"chosen~0" = select i1 %is_first, double %"pair~0", double 0.0
;   %"chosen~1" = select i1 %is_first, float %"pair~1", float 0.0
;   %"chosen~2" = select i1 %is_first, float %"pair~2", float 0.0
;   store double %"chosen~0", ptr %words, align 8
;   %"~2" = getelementptr i8, ptr %words, i64 4
;   store float %"chosen~1", ptr %words, align 8
;   store float %"chosen~2", ptr %"~2", align 4
;   ret void
; }
