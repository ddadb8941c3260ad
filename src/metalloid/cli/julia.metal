// The Julia set of the demo: one thread per pixel, smooth iteration counts turned into colours.
// After the shader of "Python gets down to (the) Metal" (metalcompute, April 2023).
#include <metal_stdlib>
using namespace metal;

constant int iterations = 100;
constant float radius = 100.0;

kernel void julia(device uchar4 *image [[buffer(0)]],
                  constant float &time [[buffer(1)]],
                  uint2 position [[thread_position_in_grid]],
                  uint2 size [[threads_per_grid]])
{
    const float speed = 0.1;
    const float t = speed * time + 1.2 * sin(speed * time * 0.3828);
    const float amplitude = 0.8 + 0.2 * sin(t * 9.119281);
    const float2 c = amplitude * float2(sin(t), cos(t));

    // Row 0 of the image is its top.
    const float2 pixel = float2(position.x, size.y - 1 - position.y) + 0.5;
    float2 z = (pixel - 0.5 * float2(size)) / float(min(size.x, size.y)) * (4.0 + 3.0 * sin(t));

    float count = 0.0;
    float squared = 0.0;
    for (int i = 0; i < iterations; i++) {
        z = float2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        squared = dot(z, z);
        if (squared > radius * radius)
            break;
        count += 1.0;
    }

    // How far the last step overshot makes the bands continuous.
    count -= log2(log(sqrt(squared)) / log(radius)) - 1.0;
    const float3 phase = log2(count) * 8.0 * float3(0.31, 0.53, 0.71);
    const float3 colour = saturate(0.5 + 0.4 * sin(phase));
    image[position.y * size.x + position.x] = uchar4(uchar3(colour * 255.0 + 0.5), 255);
}
