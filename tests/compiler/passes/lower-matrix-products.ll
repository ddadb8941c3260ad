; RUN: metalloid passes %s --pass lower-matrix-products
; The product of simdgroup matrices, of which each lane has two elements, becomes an operation of the
; simdgroup.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, float %a0, float %a1, float %b0, float %b1, i32 %index) {
entry:
  %product = call <2 x float> @__msl_simdgroup_matrix_multiply_f32(float %a0, float %a1, float %b0, float %b1, float 0.0, float 0.0)
  %first = extractelement <2 x float> %product, i64 0
  store float %first, ptr %words, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, float %a0, float %a1, float %b0, float %b1, i32 %index) {
; entry:
;   %"product~left" = "mtl.to_matrix"(float %a0, float %a1) : [8 x <8 x float>]
;   %"product~right" = "mtl.to_matrix"(float %b0, float %b1) : [8 x <8 x float>]
;   %"product~start" = "mtl.to_matrix"(float 0.0, float 0.0) : [8 x <8 x float>]
;   %"product~matrix" = "mtl.multiply_matrices"([8 x <8 x float>] %"product~left", [8 x <8 x float>] %"product~right", [8 x <8 x float>] %"product~start") : [8 x <8 x float>]
;   %"product~of0" = "mtl.of_matrix"([8 x <8 x float>] %"product~matrix") {indices = [0]} : float
;   %"product~of1" = "mtl.of_matrix"([8 x <8 x float>] %"product~matrix") {indices = [1]} : float
;   %"product~half" = insertelement <2 x float> poison, float %"product~of0", i64 0
;   %product = insertelement <2 x float> %"product~half", float %"product~of1", i64 1
;   %first = extractelement <2 x float> %product, i64 0
;   store float %first, ptr %words, align 4
;   ret void
; }
