// Kernels of the kinds that people run, for comparing the CPU's engines (cpu.py).
#include <metal_stdlib>
using namespace metal;

kernel void saxpy(device float* y, device const float* x, constant float& a,
                  uint i [[thread_position_in_grid]]) {
  y[i] = fma(a, x[i], y[i]);
}

kernel void exp_sin(device float* y, device const float* x, uint i [[thread_position_in_grid]]) {
  y[i] = exp(x[i]) * sin(x[i]);
}

kernel void float4s(device float4* y, device const float4* x, uint i [[thread_position_in_grid]]) {
  y[i] = x[i] * x[i].w + float4(1, 2, 3, 4);
}

kernel void julia(device int* rounds, constant int& width, constant float2& c,
                  uint2 p [[thread_position_in_grid]]) {
  float2 z = float2(p) * (3.0f / width) - 1.5f;
  int n = 0;
  while (n < 300 && dot(z, z) < 4.0f) {
    z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
    n++;
  }
  rounds[p.y * width + p.x] = n;
}

kernel void collatz(device int* steps, uint i [[thread_position_in_grid]]) {
  int n = 0;
  for (uint x = i + 1; x != 1; x = x & 1 ? 3 * x + 1 : x / 2) n++;
  steps[i] = n;
}

kernel void stencil(device float* y, device const float* x, constant int& n,
                    uint2 p [[thread_position_in_grid]]) {
  int i = p.x, j = p.y, at = j * n + i;
  if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
    y[at] = 0.2f * (x[at] + x[at - 1] + x[at + 1] + x[at - n] + x[at + n]);
  else
    y[at] = x[at];
}

kernel void matmul(device float* c, device const float* a, device const float* b, constant int& n,
                   uint2 p [[thread_position_in_grid]]) {
  float sum = 0;
  for (int k = 0; k < n; k++) sum += a[p.y * n + k] * b[k * n + p.x];
  c[p.y * n + p.x] = sum;
}

kernel void tiled_matmul(device float* c, device const float* a, device const float* b,
                         constant uint& n, uint2 p [[thread_position_in_grid]],
                         uint2 t [[thread_position_in_threadgroup]]) {
  threadgroup float left[16][16], right[16][16];
  float sum = 0;
  for (uint k = 0; k < n; k += 16) {
    left[t.y][t.x] = a[p.y * n + k + t.x];
    right[t.y][t.x] = b[(k + t.y) * n + p.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = 0; j < 16; j++) sum += left[t.y][j] * right[j][t.x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  c[p.y * n + p.x] = sum;
}

kernel void softmax(device float* y, device const float* x, constant uint& n,
                    uint row [[threadgroup_position_in_grid]],
                    uint t [[thread_position_in_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float parts[8];
  float most = -INFINITY;
  for (uint i = t; i < n; i += 256) most = max(most, x[row * n + i]);
  most = simd_max(most);
  if (lane == 0) parts[simdgroup] = most;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < 8; k++) most = max(most, parts[k]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (uint i = t; i < n; i += 256) sum += exp(x[row * n + i] - most);
  sum = simd_sum(sum);
  if (lane == 0) parts[simdgroup] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  sum = 0;
  for (uint k = 0; k < 8; k++) sum += parts[k];
  for (uint i = t; i < n; i += 256) y[row * n + i] = exp(x[row * n + i] - most) / sum;
}
