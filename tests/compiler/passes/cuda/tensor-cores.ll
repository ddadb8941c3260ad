; RUN: metalloid passes %s --device cuda --pass tensor-cores
; Two sums of two products with the same right factors take one mma instruction: 16 rows, not 8.
define void @mtl_kernel(ptr %launch) {
entry:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %t = call i32 @mtl_transposed_matrix(i32 %lane)
  %r = call i32 @mtl_transposed_matrix(i32 %t)
  %a = call <2 x float> @mtl_product_f16(i32 1, i32 %r, <2 x float> zeroinitializer)
  %b = call <2 x float> @mtl_product_f16(i32 2, i32 7, <2 x float> %a)
  %c = call <2 x float> @mtl_product_f16(i32 3, i32 %lane, <2 x float> zeroinitializer)
  %d = call <2 x float> @mtl_product_f16(i32 4, i32 7, <2 x float> %c)
  call void @mtl_use(<2 x float> %b, <2 x float> %d)
  ret void
}

; expect:
; define void @mtl_kernel(ptr %launch) {
; entry:
;   %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
;   %t = call i32 asm "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r"(i32 %lane) convergent nounwind memory(none)
;   %r = call i32 asm "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r"(i32 %t) convergent nounwind memory(none)
;   %mtl.product.start = extractelement <2 x float> zeroinitializer, i64 0
;   %mtl.product.start.1 = extractelement <2 x float> zeroinitializer, i64 1
;   %mtl.product.start.2 = extractelement <2 x float> zeroinitializer, i64 0
;   %mtl.product.start.3 = extractelement <2 x float> zeroinitializer, i64 1
;   %mtl.product = call { float, float, float, float } asm "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 1, i32 3, i32 2, i32 4, i32 %lane, i32 7, float %mtl.product.start, float %mtl.product.start.1, float %mtl.product.start.2, float %mtl.product.start.3) convergent nounwind memory(none)
;   %mtl.product.sum = extractvalue { float, float, float, float } %mtl.product, 0
;   %mtl.product.sum.1 = extractvalue { float, float, float, float } %mtl.product, 1
;   %mtl.product.half = insertelement <2 x float> poison, float %mtl.product.sum, i64 0
;   %b = insertelement <2 x float> %mtl.product.half, float %mtl.product.sum.1, i64 1
;   %mtl.product.sum.2 = extractvalue { float, float, float, float } %mtl.product, 2
;   %mtl.product.sum.3 = extractvalue { float, float, float, float } %mtl.product, 3
;   %mtl.product.half.1 = insertelement <2 x float> poison, float %mtl.product.sum.2, i64 0
;   %d = insertelement <2 x float> %mtl.product.half.1, float %mtl.product.sum.3, i64 1
;   call void @mtl_use(<2 x float> %b, <2 x float> %d)
;   ret void
; }
