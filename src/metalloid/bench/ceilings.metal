// What the machine can do at best: nothing but memory traffic, nothing but arithmetic.
#include <metal_stdlib>
using namespace metal;

kernel void copy(device float4* y, device const float4* x, uint i [[thread_position_in_grid]]) {
  y[i] = x[i];
}

// Eight chains: as many as hide the latency of a multiply-add.
kernel void multiply_adds(device float* y, constant float& a, constant int& iterations,
                          uint i [[thread_position_in_grid]]) {
  float s = i, t = i + 1, u = i + 2, v = i + 3, w = i + 4, x = i + 5, z = i + 6, r = i + 7;
  for (int k = 0; k < iterations; k++) {
    s = fma(s, a, 1.0f);
    t = fma(t, a, 1.0f);
    u = fma(u, a, 1.0f);
    v = fma(v, a, 1.0f);
    w = fma(w, a, 1.0f);
    x = fma(x, a, 1.0f);
    z = fma(z, a, 1.0f);
    r = fma(r, a, 1.0f);
  }
  y[i] = s + t + u + v + w + x + z + r;
}
