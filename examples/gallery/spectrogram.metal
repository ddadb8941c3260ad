#include "gallery.h"

// The spectrum of a window of 1024 samples by each threadgroup of 256 threads: Stockham's Fourier
// transform by radix 4, in threadgroup memory. Magnitudes are in decibels.
kernel void spectrogram(device const float *samples [[buffer(0)]],
                        device float *decibels [[buffer(1)]],  // one row of 512 per window
                        constant uint &hop [[buffer(2)]],
                        uint window [[threadgroup_position_in_grid]],
                        uint t [[thread_position_in_threadgroup]])
{
    threadgroup float2 data[1024];
    for (uint k = t; k < 1024; k += 256) {
        const float hann = 0.5f - 0.5f * cos(6.2831853f / 1024.0f * float(k));
        data[k] = float2(hann * samples[window * hop + k], 0.0f);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint n = 1; n < 1024; n *= 4) {  // length of the transforms that are done
        const uint k = t % n;
        float2 v[4];
        for (uint r = 0; r < 4; ++r) {
            const float angle = -6.2831853f * float(r * k) / float(4 * n);
            const float2 w = float2(cos(angle), sin(angle)), x = data[t + 256 * r];
            v[r] = float2(w.x * x.x - w.y * x.y, w.x * x.y + w.y * x.x);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const float2 a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3];
        const uint at = (t - k) * 4 + k;
        data[at] = a + c;
        data[at + n] = float2(b.x + d.y, b.y - d.x);
        data[at + 2 * n] = a - c;
        data[at + 3 * n] = float2(b.x - d.y, b.y + d.x);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint k = t; k < 512; k += 256)
        decibels[window * 512 + k] = 10.0f * log10(dot(data[k], data[k]) + 1e-9f);
}

// Time goes to the right and frequency up.
kernel void spectrogram_show(texture2d<float, access::write> image [[texture(0)]],
                             device const float *decibels [[buffer(0)]],
                             uint2 p [[thread_position_in_grid]],
                             uint2 size [[threads_per_grid]])
{
    const uint bin = (size.y - 1 - p.y) * 512 / size.y;
    image.write(float4(heat_ramp((decibels[p.x * 512 + bin] + 8.0f) / 75.0f), 1.0f), p);
}
