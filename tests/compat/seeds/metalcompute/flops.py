kernel = """
#include <metal_stdlib>;
using namespace metal;
kernel void helloABC(const device float *A [[buffer(0)]],
                       const device float *B [[buffer(1)]],
                       device float *C [[buffer(2)]],
                       uint id [[thread_position_in_grid]]) {
    float Ai = A[id];
    float Bi = B[id];
    float ABi = Ai * Bi;
    float D = Ai;
    float E = Bi;
    float F = Ai+Bi;
    float G = Ai-Bi;
"""
kernel += 400*"""
    D += Ai * G;
    E += Bi * F; 
    F += Ai * E;
    G += Bi * D; 
"""
kernel += """
    C[id] = D + E + F + G;
}
"""
