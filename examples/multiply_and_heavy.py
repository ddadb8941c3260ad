"""The two kernels of "Python gets down to (the) Metal" (metalcompute), with metalloid's API."""

import numpy as np

import metalloid as mtl

HELLO = """
#include <metal_stdlib>;
using namespace metal;
kernel void helloABC(const device float *A [[buffer(0)]],
                       const device float *B [[buffer(1)]],
                       device float *C [[buffer(2)]],
                       uint id [[thread_position_in_grid]]) {
    C[id] = A[id] * B[id];
}
"""

HEAVY = """
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
HEAVY += (
    400
    * """
    D += Ai * G;
    E += Bi * F;
    F += Ai * E;
    G += Bi * D;
"""
)
HEAVY += """
    C[id] = D + E + F + G;
}
"""


def main(count=1_000_000):
    a = np.linspace(0, 1e-3, count, dtype=np.float32)
    b = np.linspace(1e-3, 0, count, dtype=np.float32)
    c = np.zeros(count, np.float32)

    event = mtl.library(HELLO).helloABC(a, b, c, threads=count)
    assert np.array_equal(c, a * b)
    print(f"{count} products in {event.seconds * 1e3:.2f} ms")

    event = mtl.library(HEAVY).helloABC(a, b, c, threads=count)
    d, e, f, g = a.copy(), b.copy(), a + b, a - b
    for _ in range(400):
        d += a * g
        e += b * f
        f += a * e
        g += b * d
    assert np.array_equal(c, d + e + f + g)
    rate = count * (400 * 8 + 6) / event.seconds / 1e9
    print(f"{rate:.1f} GFLOP/s in the heavy kernel")


if __name__ == "__main__":
    main()
