#include "gallery.h"

struct PathSphere {
    float4 centre_and_radius;
    float4 colour_and_kind;  // kind 0: diffuse, 1: mirror, 2: glass, 3: light
};

struct PathHit {
    float t;
    float3 normal;
    float3 colour;
    int kind;
};

// The nearest of the spheres and of the six walls of a box.
inline PathHit nearest_surface(float3 origin, float3 ray, constant PathSphere *spheres, uint count)
{
    PathHit hit;
    hit.t = 1e9f;
    hit.normal = 0.0f;
    hit.colour = 0.0f;
    hit.kind = -1;
    const float3 extent = float3(2.0f, 1.5f, 3.5f);
    for (int axis = 0; axis < 3; ++axis) {
        const float wall = ray[axis] > 0.0f ? extent[axis] : -extent[axis];
        const float t = (wall - origin[axis]) / ray[axis];
        if (t > 1e-4f && t < hit.t) {
            hit.t = t;
            hit.normal = 0.0f;
            hit.normal[axis] = ray[axis] > 0.0f ? -1.0f : 1.0f;
            hit.colour = axis != 0 ? float3(0.76f, 0.75f, 0.72f)
                       : ray.x < 0.0f ? float3(0.72f, 0.16f, 0.12f) : float3(0.14f, 0.32f, 0.7f);
            const float3 at = origin + t * ray;
            const bool is_lamp = axis == 1 && ray.y > 0.0f && max(abs(at.x), abs(at.z)) < 0.8f;
            hit.kind = is_lamp ? 3 : 0;
            if (is_lamp)
                hit.colour = float3(7.0f, 6.2f, 5.0f);
        }
    }
    for (uint k = 0; k < count; ++k) {
        const float4 s = spheres[k].centre_and_radius;
        const float3 to = s.xyz - origin;
        const float b = dot(to, ray);
        const float inside = b * b - dot(to, to) + s.w * s.w;
        if (inside < 0.0f)
            continue;
        const float root = sqrt(inside);
        const float t = b - root > 1e-3f ? b - root : b + root;
        if (t > 1e-3f && t < hit.t) {
            hit.t = t;
            hit.normal = (origin + t * ray - s.xyz) / s.w;
            hit.colour = spheres[k].colour_and_kind.xyz;
            hit.kind = int(spheres[k].colour_and_kind.w);
        }
    }
    return hit;
}

// Adds samples to the sum of each pixel: paths that bounce until they meet a light.
kernel void trace_paths(device float4 *sums [[buffer(0)]],
                        constant PathSphere *spheres [[buffer(1)]],
                        constant uint &count [[buffer(2)]],
                        constant uint &samples [[buffer(3)]],
                        constant uint &seed [[buffer(4)]],
                        uint2 p [[thread_position_in_grid]],
                        uint2 size [[threads_per_grid]])
{
    const uint pixel = p.y * size.x + p.x;
    uint state = hash(pixel ^ hash(seed));
    float3 sum = 0.0f;
    for (uint k = 0; k < samples; ++k) {
        const float2 uv = float2(2.0f * (float(p.x) + random_unit(state)) - float(size.x),
                                 float(size.y) - 2.0f * (float(p.y) + random_unit(state))) / float(size.y);
        float3 origin = float3(0.0f, 0.0f, -3.4f);
        float3 ray = normalize(float3(uv, 1.55f));
        float3 weight = 1.0f;
        for (int bounce = 0; bounce < 7; ++bounce) {
            const PathHit hit = nearest_surface(origin, ray, spheres, count);
            if (hit.kind == 3) {
                sum += weight * hit.colour;
                break;
            }
            const bool leaves = dot(hit.normal, ray) > 0.0f;
            const float3 normal = leaves ? -hit.normal : hit.normal;
            weight *= hit.colour;
            origin += hit.t * ray;
            if (hit.kind == 0) {  // Lambert: directions by the cosine
                const float z = 1.0f - 2.0f * random_unit(state);
                const float angle = 6.2831853f * random_unit(state);
                const float r = sqrt(max(0.0f, 1.0f - z * z));
                ray = normalize(normal + 0.999f * float3(r * cos(angle), r * sin(angle), z));
                origin += 1e-3f * normal;
            } else if (hit.kind == 1) {
                ray = reflect(ray, normal);
                origin += 1e-3f * normal;
            } else {  // glass: Fresnel's reflectance by Schlick's approximation
                const float eta = leaves ? 1.5f : 1.0f / 1.5f;
                const float cosine = -dot(normal, ray);
                const float3 bent = refract(ray, normal, eta);
                const float edge = 1.0f - (leaves ? sqrt(saturate(1.0f - eta * eta * (1.0f - cosine * cosine))) : cosine);
                const float reflectance = 0.04f + 0.96f * edge * edge * edge * edge * edge;
                const bool reflects = dot(bent, bent) == 0.0f || random_unit(state) < reflectance;
                ray = reflects ? reflect(ray, normal) : normalize(bent);
                origin += (reflects ? 1e-3f : -1e-3f) * normal;
            }
        }
    }
    sums[pixel] += float4(sum, float(samples));
}

// Mean light to colours: a filmic curve (Narkowicz) and gamma.
kernel void tone_map(texture2d<float, access::write> image [[texture(0)]],
                     device const float4 *sums [[buffer(0)]],
                     uint2 p [[thread_position_in_grid]],
                     uint2 size [[threads_per_grid]])
{
    const float4 sum = sums[p.y * size.x + p.x];
    const float3 x = 0.9f * sum.xyz / sum.w;
    const float3 mapped = saturate(x * (2.51f * x + 0.03f) / (x * (2.43f * x + 0.59f) + 0.14f));
    image.write(float4(pow(mapped, 1.0f / 2.2f), 1.0f), p);
}
