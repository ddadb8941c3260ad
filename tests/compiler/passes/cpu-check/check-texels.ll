; RUN: metalloid passes %s --device cpu-check --pass check-texels
; Where a texture is asked for a texel, a call tells whether it has it.

define i1 @f(ptr %this, ptr %at, i32 %lod) {
entry:
  %has = call i1 @_ZNK9metalloid12texture_baseIfLN5metal6accessE3ELNS_12texture_kindE2EE3hasENS1_3vecIjLi3EEEj(ptr %this, ptr %at, i32 %lod)
  ret i1 %has
}

; expect:
; define i1 @f(ptr %this, ptr %at, i32 %lod) {
; entry:
;   %has = call i1 @_ZNK9metalloid12texture_baseIfLN5metal6accessE3ELNS_12texture_kindE2EE3hasENS1_3vecIjLi3EEEj(ptr %this, ptr %at, i32 %lod)
;   call void @mtl_sanitizer_texel(i1 %has, i32 0)
;   ret i1 %has
; }
