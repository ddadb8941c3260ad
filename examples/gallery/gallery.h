// Functions that several kernels of the gallery use: random numbers and colours.
#pragma once
#include <metal_stdlib>
using namespace metal;

// A hash of 32 bits (Wellons, "Prospecting for Hash Functions").
inline uint hash(uint x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// The next number in [0, 1) of a sequence.
inline float random_unit(thread uint &state)
{
    state = state * 747796405u + 2891336453u;
    const uint word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
    return float(((word >> 22) ^ word) >> 8) * 0x1p-24f;
}

// Cosine palettes (Quilez): one period for t in [0, 1].
inline float3 palette(float t, float3 phase)
{
    return 0.5f + 0.5f * cos(6.2831853f * (t + phase));
}

// From black over violet, orange and yellow to white, for t in [0, 1].
inline float3 heat_ramp(float t)
{
    t = saturate(t);
    return saturate(float3(2.2f * t, 2.4f * t * t, 0.9f * sin(4.7f * t) + 2.2f * t * t * t * t));
}

// Value noise: smooth, with one value per unit.
inline float value_noise(float2 p, uint seed)
{
    const float2 corner = floor(p);
    const float2 f = p - corner;
    const float2 w = f * f * (3.0f - 2.0f * f);
    const int2 c = int2(corner);
    float v[4];
    for (int k = 0; k < 4; ++k) {
        const uint x = uint(c.x + (k & 1)), y = uint(c.y + (k >> 1));
        v[k] = float(hash(x * 73856093u ^ hash(y + seed)) >> 8) * 0x1p-24f;
    }
    return mix(mix(v[0], v[1], w.x), mix(v[2], v[3], w.x), w.y);
}

// A sum of octaves of value noise, in [0, 1).
inline float fractal_noise(float2 p, uint seed, int octaves)
{
    float sum = 0.0f, amplitude = 0.5f;
    for (int k = 0; k < octaves; ++k) {
        sum += amplitude * value_noise(p, seed + uint(k));
        p = float2(1.6f * p.x + 1.2f * p.y, -1.2f * p.x + 1.6f * p.y);
        amplitude *= 0.5f;
    }
    return sum;
}
