; RUN: metalloid passes %s --width 4 --pass linearize
; The divergent branch becomes a mask: %odd runs if any lane takes it. Loads of neighbours are one
; vector load.
define void @mtl_thread(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) {
entry:
  %i = zext i32 %grid_x to i64
  %p = getelementptr i32, ptr %words, i64 %i
  %x = load i32, ptr %p, align 4
  %is.odd = trunc i32 %x to i1
  br i1 %is.odd, label %odd, label %join
odd:
  %tripled = mul i32 %x, 3
  store i32 %tripled, ptr %p, align 4
  br label %join
join:
  ret void
}

; expect:
; define internal void @mtl_threads(ptr %words, ptr %threadgroup_memory, i32 %grid_x, i32 %index) alwaysinline #vector_function {
; entry:
;   %"s.p" = alloca ptr, align 64
;   %"v.x" = alloca <4 x i32>, align 64
;   %"mask.odd" = alloca <4 x i1>, align 64
;   br label %b0
; b0:
;   %v1 = zext i32 %grid_x to i64
;   %v2 = getelementptr i32, ptr %words, i64 %v1
;   store ptr %v2, ptr %"s.p", align 8
;   %v3 = load <4 x i32>, ptr %v2, align 4
;   store <4 x i32> %v3, ptr %"v.x", align 64
;   %v4 = trunc <4 x i32> %v3 to <4 x i1>
;   %v5 = xor <4 x i1> %v4, splat (i1 true)
;   store <4 x i1> %v4, ptr %"mask.odd", align 64
;   br label %b1
; b1:
;   %v6 = load <4 x i1>, ptr %"mask.odd", align 64
;   %v7 = bitcast <4 x i1> %v6 to i4
;   %v8 = icmp ne i4 %v7, 0
;   br i1 %v8, label %b1.active, label %b1.skip
; b1.skip:
;   br label %b2
; b1.active:
;   %v9 = bitcast <4 x i1> %v6 to i4
;   %v10 = icmp eq i4 %v9, -1
;   br i1 %v10, label %b1.all, label %b1.masked
; b1.all:
;   %v11 = load <4 x i32>, ptr %"v.x", align 64
;   %v12 = mul <4 x i32> %v11, splat (i32 3)
;   %v13 = load ptr, ptr %"s.p", align 8
;   store <4 x i32> %v12, ptr %v13, align 4
;   br label %b1.end
; b1.masked:
;   %v14 = load <4 x i32>, ptr %"v.x", align 64
;   %v15 = mul <4 x i32> %v14, splat (i32 3)
;   %v16 = load ptr, ptr %"s.p", align 8
;   call void @llvm.masked.store.v4i32.p0(<4 x i32> %v15, ptr align 4 %v16, <4 x i1> %v6)
;   br label %b1.end
; b1.end:
;   br label %b2
; b2:
;   br label %b3
; b3:
;   ret void
; }
;
; declare void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, <4 x i1>)
