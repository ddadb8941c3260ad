#include <metal_simdgroup>
#include <metal_simdgroup_matrix>
#include <metal_stdlib>
using namespace metal;
#include <c10/metal/utils.h>
#include <ATen/native/mps/kernels/DecodeAttention.h>
#include <ATen/native/mps/kernels/PrefillAttention.h>
