#include "gallery.h"

// Slime mould (Jones, 2010): each agent smells the trail ahead, turns to it and moves on.
kernel void slime_move(device float4 *agents [[buffer(0)]],  // x, y, angle
                       device const float *trail [[buffer(1)]],
                       constant uint2 &size [[buffer(2)]],
                       constant uint &step [[buffer(3)]],
                       uint i [[thread_position_in_grid]])
{
    float4 agent = agents[i];
    uint state = hash(i ^ hash(step));
    float smell[3];
    for (int k = 0; k < 3; ++k) {
        const float angle = agent.z + 0.45f * float(k - 1);
        const int2 q = int2(floor(agent.xy + 9.0f * float2(cos(angle), sin(angle)))) + int2(size);
        smell[k] = trail[uint(q.y) % size.y * size.x + uint(q.x) % size.x];
    }
    const float turn = 0.4f;
    if (smell[1] < smell[0] && smell[1] < smell[2])
        agent.z += random_unit(state) < 0.5f ? -turn : turn;
    else if (smell[1] < smell[0] || smell[1] < smell[2])
        agent.z += smell[0] > smell[2] ? -turn : turn;
    agent.xy += float2(cos(agent.z), sin(agent.z));
    agent.xy -= float2(size) * floor(agent.xy / float2(size));
    agent.xy = min(agent.xy, float2(size) - 0.01f);
    agents[i] = agent;
}

kernel void slime_deposit(device const float4 *agents [[buffer(0)]],
                          device atomic_uint *visits [[buffer(1)]],
                          constant uint2 &size [[buffer(2)]],
                          uint i [[thread_position_in_grid]])
{
    const uint2 p = uint2(agents[i].xy);
    atomic_fetch_add_explicit(&visits[p.y * size.x + p.x], 1u, memory_order_relaxed);
}

// The trail spreads to its eight neighbours and fades; visits are added and forgotten.
kernel void slime_diffuse(device const float *trail [[buffer(0)]],
                          device float *next [[buffer(1)]],
                          device uint *visits [[buffer(2)]],
                          uint2 p [[thread_position_in_grid]],
                          uint2 size [[threads_per_grid]])
{
    float sum = 0.0f;
    for (uint y = 0; y < 3; ++y)
        for (uint x = 0; x < 3; ++x)
            sum += trail[(p.y + y + size.y - 1) % size.y * size.x + (p.x + x + size.x - 1) % size.x];
    const uint at = p.y * size.x + p.x;
    next[at] = 0.92f * (0.5f * trail[at] + 0.5f * sum / 9.0f) + min(float(visits[at]), 4.0f);
    visits[at] = 0;
}

kernel void slime_show(texture2d<float, access::write> image [[texture(0)]],
                       device const float *trail [[buffer(0)]],
                       uint2 p [[thread_position_in_grid]],
                       uint2 size [[threads_per_grid]])
{
    const float t = 1.0f - exp(-0.11f * trail[p.y * size.x + p.x]);
    const float3 colour = mix(float3(0.02f, 0.05f, 0.06f), float3(0.95f, 0.85f, 0.2f), t) + 0.4f * t * t * t;
    image.write(float4(saturate(colour), 1.0f), p);
}
