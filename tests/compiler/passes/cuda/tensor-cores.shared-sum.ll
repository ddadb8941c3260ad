; RUN: metalloid passes %s --device cuda --pass tensor-cores
; The sum of the first product is used twice: each product is an instruction.
define void @mtl_kernel(ptr %launch) {
entry:
  %a = call <2 x float> @mtl_product_f16(i32 1, i32 2, <2 x float> zeroinitializer)
  %b = call <2 x float> @mtl_product_f16(i32 3, i32 2, <2 x float> %a)
  call void @mtl_use(<2 x float> %a, <2 x float> %b)
  ret void
}

; expect:
; define void @mtl_kernel(ptr %launch) {
; entry:
;   %mtl.product.start = extractelement <2 x float> zeroinitializer, i64 0
;   %mtl.product.start.1 = extractelement <2 x float> zeroinitializer, i64 1
;   %mtl.product = call { float, float, float, float } asm "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $10};", "=f,=f,=f,=f,r,r,r,f,f,f,f"(i32 1, i32 0, i32 2, float %mtl.product.start, float %mtl.product.start.1, float 0.0, float 0.0) convergent nounwind memory(none)
;   %mtl.product.sum = extractvalue { float, float, float, float } %mtl.product, 0
;   %mtl.product.sum.1 = extractvalue { float, float, float, float } %mtl.product, 1
;   %mtl.product.half = insertelement <2 x float> poison, float %mtl.product.sum, i64 0
;   %a = insertelement <2 x float> %mtl.product.half, float %mtl.product.sum.1, i64 1
;   %mtl.product.1.start = extractelement <2 x float> %a, i64 0
;   %mtl.product.1.start.1 = extractelement <2 x float> %a, i64 1
;   %mtl.product.1 = call { float, float, float, float } asm "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $10};", "=f,=f,=f,=f,r,r,r,f,f,f,f"(i32 3, i32 0, i32 2, float %mtl.product.1.start, float %mtl.product.1.start.1, float 0.0, float 0.0) convergent nounwind memory(none)
;   %mtl.product.1.sum = extractvalue { float, float, float, float } %mtl.product.1, 0
;   %mtl.product.1.sum.1 = extractvalue { float, float, float, float } %mtl.product.1, 1
;   %mtl.product.1.half = insertelement <2 x float> poison, float %mtl.product.1.sum, i64 0
;   %b = insertelement <2 x float> %mtl.product.1.half, float %mtl.product.1.sum.1, i64 1
;   call void @mtl_use(<2 x float> %a, <2 x float> %b)
;   ret void
; }
