// The headers that only hold structs: host and device must lay them out alike.
#include <ATen/native/mps/kernels/Activation.h>
#include <ATen/native/mps/kernels/Distance.h>
#include <ATen/native/mps/kernels/Embedding.h>
#include <ATen/native/mps/kernels/EmbeddingBag.h>
#include <ATen/native/mps/kernels/GridSampler.h>
#include <ATen/native/mps/kernels/GroupNorm.h>
#include <ATen/native/mps/kernels/Indexing.h>
#include <ATen/native/mps/kernels/LinearAlgebra.h>
#include <ATen/native/mps/kernels/Pooling.h>
#include <ATen/native/mps/kernels/ReduceOps.h>
#include <ATen/native/mps/kernels/SamplingHelpers.h>
#include <ATen/native/mps/kernels/Shape.h>
#include <ATen/native/mps/kernels/TensorCompare.h>
#include <ATen/native/mps/kernels/UpSample.h>
#include <metal_stdlib>
using namespace metal;

kernel void sizes(device uint* y) {
  y[0] = sizeof(ELUParams<float>);
  y[1] = sizeof(EmbeddingBagParams<uint>);
  y[2] = sizeof(GridSamplerParams<5, int>);
  y[3] = sizeof(GroupNormParams<uint>);
  y[4] = sizeof(NormParams<>);
  y[5] = sizeof(ClampScalarParams<half>);
  y[6] = sizeof(PoolingParams<5, int>);
}

kernel void cubic(
    device float4* y, device const float* t, uint i [[thread_position_in_grid]]) {
  float coefficients[4];
  get_cubic_coefficients<float>(coefficients, t[i]);
  y[i] = float4(coefficients[0], coefficients[1], coefficients[2], coefficients[3]);
}
