#include <c10/metal/random.h>
#include <metal_stdlib>
using namespace metal;

kernel void bits(device uint4* y, constant long& seed, uint i [[thread_position_in_grid]]) {
  y[i] = c10::metal::philox4::rand(seed, i);
}

kernel void uniform_(device float* y, constant long& seed, uint i [[thread_position_in_grid]]) {
  y[i] = c10::metal::rand(seed, i);
}

kernel void normal(device float* y, constant long& seed, uint i [[thread_position_in_grid]]) {
  y[i] = c10::metal::randn(seed, i);
}

kernel void pair_of_normals(device float2* y, device const uint2* raw, uint i [[thread_position_in_grid]]) {
  y[i] = c10::metal::box_muller_from_philox(raw[i]);
}

kernel void integers(
    device long* y, constant long& seed, constant long2& range, uint i [[thread_position_in_grid]]) {
  y[i] = c10::metal::randint64(seed, i, range.x, range.y);
}
