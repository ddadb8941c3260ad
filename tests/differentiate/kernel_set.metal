// Kernels whose adjoints test_kernel_set.py compares with complex steps of NumPy functions.
#include <metal_stdlib>
using namespace metal;

kernel void chain(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
  float a = x[i];
  a = a > 0 ? tanh(a) * exp(-a * a) : sin(a) + 0.5f * a;
  y[i] = a * a + sqrt(1 + a * a);
}

kernel void product_row(device const float *a, device const float *b, device float *y,
                        constant int &n, uint2 at [[thread_position_in_grid]]) {
  float sum = 0;
  for (int k = 0; k < n; k++) sum += a[at.y * n + k] * b[k * n + at.x];
  y[at.y * n + at.x] = sum;
}

kernel void running_product(device const float *x, device float *y, constant int &n,
                            uint i [[thread_position_in_grid]]) {
  float prod = 1;
  for (int k = 0; k < n; k++) prod *= x[i * n + k];
  y[i] = prod;
}

kernel void scatter(device const float *x, device const int *indices, device atomic_float *y,
                    uint i [[thread_position_in_grid]]) {
  float value = x[indices[i]];
  atomic_fetch_add_explicit(&y[indices[i] / 2], value * value, memory_order_relaxed);
}

kernel void stencil(device const float *x, constant float &c, device float *y, constant int &n,
                    uint i [[thread_position_in_grid]]) {
  float left = i > 0 ? x[i - 1] : 0, right = int(i) + 1 < n ? x[i + 1] : 0;
  y[i] = x[i] + c * (left - 2 * x[i] + right) * x[i];
}

kernel void softmax_tree(device const float *x, device float *y,
                         uint t [[thread_position_in_threadgroup]],
                         uint i [[thread_position_in_grid]]) {
  threadgroup float shared[64];
  shared[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 32; s > 0; s /= 2) {
    if (t < s) shared[t] = max(shared[t], shared[t + s]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  float high = shared[0];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float e = exp(x[i] - high);
  shared[t] = e;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 32; s > 0; s /= 2) {
    if (t < s) shared[t] += shared[t + s];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[i] = e / shared[0];
}

kernel void softmax_lanes(device const float *x, device float *y, constant int &n,
                          uint row [[threadgroup_position_in_grid]],
                          uint lane [[thread_index_in_simdgroup]]) {
  float high = -INFINITY, sum = 0;
  for (int k = lane; k < n; k += 32) high = max(high, x[row * n + k]);
  high = simd_max(high);
  for (int k = lane; k < n; k += 32) sum += exp(x[row * n + k] - high);
  sum = simd_sum(sum);
  for (int k = lane; k < n; k += 32) y[row * n + k] = exp(x[row * n + k] - high) / sum;
}

kernel void product_tree(device const float *x, device float *y,
                         uint t [[thread_position_in_threadgroup]],
                         uint i [[thread_position_in_grid]]) {
  threadgroup float shared[64];
  shared[t] = x[i];
  for (uint s = 32; s > 0; s /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < s) shared[t] *= shared[t + s];
  }
  if (t == 0) y[i / 64] = shared[0];
}

kernel void stencil_iterations(device const float *x, device float *y,
                           uint t [[thread_position_in_threadgroup]],
                           uint i [[thread_position_in_grid]]) {
  threadgroup float shared[64];
  shared[t] = x[i];
  for (int k = 0; k < 5; k++) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float value = shared[t] + 0.1f * shared[(t + 1) % 64] * shared[(t + 63) % 64];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    shared[t] = value;
  }
  y[i] = shared[t] * shared[t];
}

kernel void lanes(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
  float a = x[i];
  float prefix = simd_prefix_inclusive_sum(a);
  y[i] = prefix * simd_shuffle_xor(a, 5) + simd_shuffle_down(a * a, 3);
}

// https://github.com/taichi-dev/taichi/issues/8356: a value is read before and after it changes.
kernel void changed_in_a_loop(device const float *x, device float *y, constant int &n,
                              uint i [[thread_position_in_grid]]) {
  float q = x[i], total = 0;
  for (int k = 0; k < n; k++) {
    float before = q;
    q = q * q * 0.5f + before;
    total += before * q;
  }
  y[i] = total + q;
}

kernel void while_small(device const float *x, device float *y,
                        uint i [[thread_position_in_grid]]) {
  float r = x[i];
  int n = 0;
  while (r < 4 && n++ < 9) r = r * (1 + x[i]);
  y[i] = r;
}

kernel void nested(device const float *x, device float *y, constant int &n,
                   uint i [[thread_position_in_grid]]) {
  float total = 0;
  for (int j = 0; j < n; j++) {
    float s = x[i];
    for (int k = 0; k <= j; k++) s = sin(s) * x[i + k] + s;
    total += s * s;
  }
  y[i] = total;
}

kernel void stored_twice(device const float *x, device float *y,
                         uint i [[thread_position_in_grid]]) {
  float a = x[i];
  y[i] = a * a * a;
  if (a > 0.8f) y[i] = sin(a);
}

kernel void grid_sample(device const float *x, device const float *grid, device float *y,
                        constant int &height, constant int &width,
                        uint i [[thread_position_in_grid]]) {
  float u = ((grid[2 * i] + 1) * width - 1) / 2, v = ((grid[2 * i + 1] + 1) * height - 1) / 2;
  int left = floor(u), top = floor(v);
  float value = 0;
  for (int dy = 0; dy < 2; dy++)
    for (int dx = 0; dx < 2; dx++) {
      int column = left + dx, row = top + dy;
      if (column < 0 || column >= width || row < 0 || row >= height) continue;
      float by = dy == 0 ? top + 1 - v : v - top;
      value += (dx == 0 ? left + 1 - u : u - left) * by * x[row * width + column];
    }
  y[i] = value;
}

// The recurrence of mlx-lm's gated_delta kernel.
kernel void gated_delta(device const float *q, device const float *k, device const float *v,
                        device const float *g, device const float *beta, device float *y,
                        constant int &steps, uint2 at [[thread_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
  constexpr int n = 2, keys = 64, values = 4;
  int value = at.y % values;
  float state[n] = {0, 0};
  for (int t = 0; t < steps; t++) {
    float memory = 0, out = 0;
    for (int j = 0; j < n; j++) {
      state[j] *= g[t];
      memory += state[j] * k[t * keys + lane * n + j];
    }
    float delta = (v[t * values + value] - simd_sum(memory)) * beta[t];
    for (int j = 0; j < n; j++) {
      state[j] += k[t * keys + lane * n + j] * delta;
      out += state[j] * q[t * keys + lane * n + j];
    }
    out = simd_sum(out);
    if (lane == 0) y[t * values + value] = out;
  }
}
