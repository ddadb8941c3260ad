#include "gallery.h"

// A scene of signed distances, sphere traced, with soft shadows and ambient occlusion (Quilez).
inline float scene_distance(float3 p)
{
    const float plane = p.y;
    // A ball that a gyroid cuts.
    const float3 q = p - float3(0.0f, 1.1f, 0.0f);
    const float3 g = 7.0f * q;
    const float gyroid = abs(dot(sin(g), cos(g.yzx))) / 9.0f - 0.035f;
    const float ball = max(length(q) - 1.1f, gyroid);
    // Rounded boxes in a circle around it.
    const float angle = atan2(p.z, p.x);
    const float sector = 6.2831853f / 9.0f;
    const float turn = angle - sector * floor(angle / sector + 0.5f);
    const float radius = length(p.xz);
    const float3 b = float3(radius * cos(turn) - 2.1f, p.y - 0.35f, radius * sin(turn));
    const float box = length(max(abs(b) - float3(0.2f, 0.3f, 0.2f), 0.0f)) - 0.05f;
    return min(plane, min(ball, box));
}

inline float march(float3 origin, float3 direction, float limit)
{
    float t = 0.02f;
    for (int k = 0; k < 160; ++k) {
        const float d = scene_distance(origin + t * direction);
        if (d < 0.0008f * t || t > limit)
            break;
        t += 0.8f * d;
    }
    return t;
}

kernel void ray_marcher(texture2d<float, access::write> image [[texture(0)]],
                        constant float3 &eye [[buffer(0)]],
                        uint2 p [[thread_position_in_grid]],
                        uint2 size [[threads_per_grid]])
{
    const float3 target = float3(0.0f, 0.75f, 0.0f);
    const float3 forward = normalize(target - eye);
    const float3 right = normalize(cross(forward, float3(0.0f, 1.0f, 0.0f)));
    const float3 up = cross(right, forward);
    const float2 uv = float2(2.0f * float(p.x) + 1.0f - float(size.x),
                             float(size.y) - 2.0f * float(p.y) - 1.0f) / float(size.y);
    const float3 ray = normalize(1.9f * forward + uv.x * right + uv.y * up);

    const float3 sun = normalize(float3(0.6f, 0.7f, -0.35f));
    const float3 sky = mix(float3(0.75f, 0.85f, 0.95f), float3(0.25f, 0.45f, 0.8f), saturate(ray.y * 2.0f));
    float3 colour = sky;
    const float t = march(eye, ray, 20.0f);
    if (t < 20.0f) {
        const float3 hit = eye + t * ray;
        // The gradient, from the corners of a tetrahedron: a loop, so that the scene is compiled once.
        float3 gradient = 0.0f;
        for (int k = 0; k < 4; ++k) {
            const float3 corner = float3(k == 0 || k == 3 ? 1.0f : -1.0f, k < 2 ? -1.0f : 1.0f,
                                         k == 1 || k == 3 ? 1.0f : -1.0f);
            gradient += corner * scene_distance(hit + 0.0006f * t * corner);
        }
        const float3 normal = normalize(gradient);

        float shadow = 1.0f;
        for (float s = 0.03f; s < 6.0f && shadow > 0.005f;) {
            const float d = scene_distance(hit + 0.005f * normal + s * sun);
            shadow = min(shadow, 10.0f * d / s);
            s += clamp(d, 0.02f, 0.3f);
        }
        float occlusion = 0.0f;
        for (int k = 1; k <= 5; ++k) {
            const float h = 0.06f * float(k);
            occlusion += (h - scene_distance(hit + h * normal)) * exp2(-float(k));
        }
        const float ambient = saturate(1.0f - 3.5f * occlusion);

        float3 material;
        if (hit.y < 0.01f) {
            const float checker = fmod(abs(floor(hit.x) + floor(hit.z)), 2.0f);
            material = mix(float3(0.32f, 0.33f, 0.36f), float3(0.62f, 0.6f, 0.56f), checker);
        } else if (length(hit.xz) < 1.3f) {
            material = float3(0.95f, 0.42f, 0.16f);
        } else {
            material = palette(atan2(hit.z, hit.x) / 6.2831853f, float3(0.0f, 0.33f, 0.67f)) * 0.6f + 0.2f;
        }
        const float diffuse = saturate(dot(normal, sun)) * saturate(shadow);
        const float shine = pow(saturate(dot(normal, normalize(sun - ray))), 50.0f) * saturate(shadow);
        const float3 light = 1.5f * diffuse * float3(1.0f, 0.92f, 0.78f)
                           + ambient * (0.3f + 0.25f * normal.y) * float3(0.6f, 0.75f, 1.0f);
        colour = material * light + 0.35f * shine;
        colour = mix(sky, colour, exp(-0.0012f * t * t * t));
    }
    image.write(float4(sqrt(saturate(colour)), 1.0f), p);
}
