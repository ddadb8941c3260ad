#include <metal_stdlib>
using namespace metal;
#include <c10/metal/utils.h>
#include <ATen/native/mps/kernels/SortTopK.h>
