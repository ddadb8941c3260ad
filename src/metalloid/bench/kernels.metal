// Kernels of the kinds that people run: plain MSL, written as for a GPU.
#include <metal_stdlib>
using namespace metal;

kernel void saxpy(device float* y, device const float* x, constant float& a,
                  uint i [[thread_position_in_grid]]) {
  y[i] = a * x[i] + y[i];
}

kernel void exp_of(device float* y, device const float* x, uint i [[thread_position_in_grid]]) {
  y[i] = exp(x[i]);
}

kernel void log_of(device float* y, device const float* x, uint i [[thread_position_in_grid]]) {
  y[i] = log(x[i]);
}

kernel void sin_of(device float* y, device const float* x, uint i [[thread_position_in_grid]]) {
  y[i] = sin(x[i]);
}

kernel void pow_of(device float* y, device const float* x, constant float& exponent,
                   uint i [[thread_position_in_grid]]) {
  y[i] = pow(x[i], exponent);
}

kernel void normalise(device float4* y, device const float4* x,
                      uint i [[thread_position_in_grid]]) {
  y[i] = x[i] * (1 / sqrt(dot(x[i], x[i])));
}

kernel void julia(device int* iterations, constant int& width, constant int& height,
                  constant float2& c, uint2 p [[thread_position_in_grid]]) {
  float x = (p.x - 0.5f * width) * (3.0f / width), y = (p.y - 0.5f * height) * (3.0f / width);
  int n = 0;
  for (; n < 300; n++) {
    float x2 = x * x, y2 = y * y;
    if (x2 + y2 > 4) break;
    y = 2 * x * y + c.y;
    x = x2 - y2 + c.x;
  }
  iterations[p.y * width + p.x] = n;
}

kernel void mandelbrot(device int* iterations, constant int& width, constant int& height,
                       uint2 p [[thread_position_in_grid]]) {
  float2 c = float2(p.x * (3.0f / width) - 2, p.y * (2.0f / height) - 1), z = 0;
  int n = 0;
  while (n < 256 && dot(z, z) <= 4) {
    z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c;
    n++;
  }
  iterations[p.y * width + p.x] = n;
}

kernel void collatz(device int* steps, uint i [[thread_position_in_grid]]) {
  int n = 0;
  for (uint x = i + 1; x != 1; n++) x = x & 1 ? 3 * x + 1 : x / 2;
  steps[i] = n;
}

kernel void primes(device int* sums, uint i [[thread_position_in_grid]]) {
  int sum = 0;
  for (uint p = 2; p <= (i & 255); p++) {
    bool prime = true;
    for (uint q = 2; q * q <= p; q++) {
      if (p % q == 0) {
        prime = false;
        break;
      }
    }
    if (!prime) continue;
    sum += p;
  }
  sums[i] = sum;
}

kernel void stencil(device float* y, device const float* x, constant int& n,
                    uint2 p [[thread_position_in_grid]]) {
  int i = p.x, j = p.y, at = j * n + i;
  if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
    y[at] = 0.2f * (x[at] + x[at - 1] + x[at + 1] + x[at - n] + x[at + n]);
  else
    y[at] = x[at];
}

// For grids that are larger than the image, as they are where threadgroups must be whole.
kernel void guarded_stencil(device float* y, device const float* x, constant uint& n,
                            uint2 p [[thread_position_in_grid]]) {
  const uint at = p.y * n + p.x;
  if (p.x == 0 || p.y == 0 || p.x >= n - 1 || p.y >= n - 1) {
    if (p.x < n && p.y < n) y[at] = x[at];
    return;
  }
  y[at] = 0.2f * (x[at] + x[at - 1] + x[at + 1] + x[at - n] + x[at + n]);
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

// What each body feels of all others; x, y, z and the mass in w.
kernel void nbody(device float4* acceleration, device const float4* bodies, constant int& n,
                  uint i [[thread_position_in_grid]]) {
  float3 here = bodies[i].xyz, sum = 0;
  for (int j = 0; j < n; j++) {
    float3 d = bodies[j].xyz - here;
    float inverse = 1 / sqrt(dot(d, d) + 1e-3f);
    sum += d * (bodies[j].w * inverse * inverse * inverse);
  }
  acceleration[i] = float4(sum, 0);
}

// A sum per 256 elements.
kernel void tree_reduction(device float* sums, device const float* x,
                           uint i [[thread_position_in_grid]],
                           uint group [[threadgroup_position_in_grid]],
                           uint t [[thread_position_in_threadgroup]]) {
  threadgroup float parts[256];
  parts[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 128; s > 0; s /= 2) {
    if (t < s) parts[t] += parts[t + s];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (t == 0) sums[group] = parts[0];
}

// How often each byte occurs: counted by threadgroup, each of which takes `share` bytes.
kernel void histogram(device atomic_uint* counts, device const uchar* x, constant uint& share,
                      uint group [[threadgroup_position_in_grid]],
                      uint t [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint own[256];
  atomic_store_explicit(&own[t], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = t; i < share; i += 256)
    atomic_fetch_add_explicit(&own[x[group * share + i]], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&counts[t], atomic_load_explicit(&own[t], memory_order_relaxed),
                            memory_order_relaxed);
}

// Running sums of each row; 256 threads a row.
kernel void prefix_sum(device float* y, device const float* x, constant uint& n,
                       uint row [[threadgroup_position_in_grid]],
                       uint t [[thread_position_in_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float parts[8];
  float before = 0;
  for (uint i = t; i < n; i += 256) {
    float own = simd_prefix_inclusive_sum(x[row * n + i]);
    if (lane == 31) parts[simdgroup] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float left = before;
    for (uint k = 0; k < 8; k++) {
      if (k < simdgroup) left += parts[k];
      before += parts[k];
    }
    y[row * n + i] = left + own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

// Softmax of each row; 256 threads a row.
kernel void softmax(device float* y, device const float* x, constant uint& n,
                    uint row [[threadgroup_position_in_grid]],
                    uint t [[thread_position_in_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]],
                    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float parts[8];
  float maximum = -INFINITY;
  for (uint i = t; i < n; i += 256) maximum = max(maximum, x[row * n + i]);
  maximum = simd_max(maximum);
  if (lane == 0) parts[simdgroup] = maximum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < 8; k++) maximum = max(maximum, parts[k]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (uint i = t; i < n; i += 256) sum += exp(x[row * n + i] - maximum);
  sum = simd_sum(sum);
  if (lane == 0) parts[simdgroup] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  sum = 0;
  for (uint k = 0; k < 8; k++) sum += parts[k];
  for (uint i = t; i < n; i += 256) y[row * n + i] = exp(x[row * n + i] - maximum) / sum;
}
