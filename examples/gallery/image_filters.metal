#include "gallery.h"

inline float3 filter_read(texture2d<float, access::read> image, int2 p)
{
    const int2 last = int2(int(image.get_width()), int(image.get_height())) - 1;
    return image.read(uint2(clamp(p, int2(0), last))).xyz;
}

inline float filter_luma(float3 colour)
{
    return dot(colour, float3(0.299f, 0.587f, 0.114f));
}

// Noise that is the same for each run.
kernel void filter_noise(texture2d<float, access::read> image [[texture(0)]],
                         texture2d<float, access::write> result [[texture(1)]],
                         constant float &amount [[buffer(0)]],
                         uint2 p [[thread_position_in_grid]])
{
    uint state = hash(p.y * 65537u + p.x);
    const float3 noise = float3(random_unit(state), random_unit(state), random_unit(state)) - 0.5f;
    result.write(float4(saturate(image.read(p).xyz + amount * noise), 1.0f), p);
}

// Bilateral: the mean of pixels that are near in the picture and in colour.
kernel void filter_bilateral(texture2d<float, access::read> image [[texture(0)]],
                             texture2d<float, access::write> result [[texture(1)]],
                             uint2 p [[thread_position_in_grid]])
{
    const float3 middle = filter_read(image, int2(p));
    float3 sum = 0.0f;
    float weights = 0.0f;
    for (int y = -5; y <= 5; ++y)
        for (int x = -5; x <= 5; ++x) {
            const float3 c = filter_read(image, int2(p) + int2(x, y));
            const float3 d = c - middle;
            const float w = exp(-0.06f * float(x * x + y * y) - 12.0f * dot(d, d));
            sum += w * c;
            weights += w;
        }
    result.write(float4(sum / weights, 1.0f), p);
}

// Edges by Sobel's operator.
kernel void filter_sobel(texture2d<float, access::read> image [[texture(0)]],
                         texture2d<float, access::write> result [[texture(1)]],
                         uint2 p [[thread_position_in_grid]])
{
    float2 slope = 0.0f;
    for (int k = -1; k <= 1; ++k) {
        const float weight = k == 0 ? 2.0f : 1.0f;
        slope.x += weight * (filter_luma(filter_read(image, int2(p) + int2(1, k)))
                             - filter_luma(filter_read(image, int2(p) + int2(-1, k))));
        slope.y += weight * (filter_luma(filter_read(image, int2(p) + int2(k, 1)))
                             - filter_luma(filter_read(image, int2(p) + int2(k, -1))));
    }
    result.write(float4(float3(saturate(length(slope))), 1.0f), p);
}

// Kuwahara: the mean of the quadrant that varies least, which looks like paint.
kernel void filter_kuwahara(texture2d<float, access::read> image [[texture(0)]],
                            texture2d<float, access::write> result [[texture(1)]],
                            uint2 p [[thread_position_in_grid]])
{
    float3 best = 0.0f;
    float least = 1e9f;
    for (int quadrant = 0; quadrant < 4; ++quadrant) {
        float3 sum = 0.0f;
        float squares = 0.0f;
        for (int y = 0; y <= 4; ++y)
            for (int x = 0; x <= 4; ++x) {
                const int2 d = int2((quadrant & 1) != 0 ? x : -x, (quadrant & 2) != 0 ? y : -y);
                const float3 c = filter_read(image, int2(p) + d);
                sum += c;
                squares += dot(c, c);
            }
        const float3 mean = sum / 25.0f;
        const float variance = squares / 25.0f - dot(mean, mean);
        if (variance < least) {
            least = variance;
            best = mean;
        }
    }
    result.write(float4(best, 1.0f), p);
}

// Halftone: dots whose area follows the darkness, on a grid at 30 degrees.
kernel void filter_halftone(texture2d<float, access::read> image [[texture(0)]],
                            texture2d<float, access::write> result [[texture(1)]],
                            uint2 p [[thread_position_in_grid]])
{
    const float2 q = float2(0.866f * float(p.x) - 0.5f * float(p.y), 0.5f * float(p.x) + 0.866f * float(p.y));
    const float2 cell = 6.0f * (floor(q / 6.0f) + 0.5f);
    const float2 centre = float2(0.866f * cell.x + 0.5f * cell.y, -0.5f * cell.x + 0.866f * cell.y);
    const float dark = 1.0f - filter_luma(filter_read(image, int2(centre)));
    const float ink = saturate(3.6f * sqrt(dark) - length(q - cell) + 0.5f);
    result.write(float4(mix(float3(0.97f, 0.95f, 0.88f), float3(0.1f, 0.12f, 0.25f), ink), 1.0f), p);
}

// Emboss: the slope along a diagonal, on grey.
kernel void filter_emboss(texture2d<float, access::read> image [[texture(0)]],
                          texture2d<float, access::write> result [[texture(1)]],
                          uint2 p [[thread_position_in_grid]])
{
    const float slope = filter_luma(filter_read(image, int2(p) + 1)) - filter_luma(filter_read(image, int2(p) - 1));
    result.write(float4(float3(saturate(0.5f + 0.8f * slope)), 1.0f), p);
}
