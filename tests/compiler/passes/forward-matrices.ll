; RUN: metalloid passes %s --pass forward-matrices
; The product of a product: the first one's elements do not go to the lanes and back.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, float %a, float %b, i32 %index) {
entry:
  %m = "mtl.to_matrix"(float %a, float %b) : [8 x <8 x float>]
  %first = "mtl.multiply_matrices"([8 x <8 x float>] %m, [8 x <8 x float>] %m, [8 x <8 x float>] %m) : [8 x <8 x float>]
  %x = "mtl.of_matrix"([8 x <8 x float>] %first) {indices = [0]} : float
  %y = "mtl.of_matrix"([8 x <8 x float>] %first) {indices = [1]} : float
  %reloaded = "mtl.to_matrix"(float %x, float %y) : [8 x <8 x float>]
  %second = "mtl.multiply_matrices"([8 x <8 x float>] %reloaded, [8 x <8 x float>] %m, [8 x <8 x float>] %reloaded) : [8 x <8 x float>]
  %z = "mtl.of_matrix"([8 x <8 x float>] %second) {indices = [0]} : float
  store float %z, ptr %words, align 4
  ret void
}

; expect:
; define void @mtl_thread(ptr %words, ptr %threadgroup_memory, float %a, float %b, i32 %index) {
; entry:
;   %m = "mtl.to_matrix"(float %a, float %b) : [8 x <8 x float>]
;   %first = "mtl.multiply_matrices"([8 x <8 x float>] %m, [8 x <8 x float>] %m, [8 x <8 x float>] %m) : [8 x <8 x float>]
;   %second = "mtl.multiply_matrices"([8 x <8 x float>] %first, [8 x <8 x float>] %m, [8 x <8 x float>] %first) : [8 x <8 x float>]
;   %z = "mtl.of_matrix"([8 x <8 x float>] %second) {indices = [0]} : float
;   store float %z, ptr %words, align 4
;   br label %mtl.exit
; mtl.exit:
;   ret void
; }
