// What a blit encoder does, as kernels: they take their turn among the others.
#include <metal_stdlib>
using namespace metal;

kernel void copy_bytes(device const uchar *source [[buffer(0)]],
                       device uchar *destination [[buffer(1)]],
                       uint i [[thread_position_in_grid]])
{
    destination[i] = source[i];
}

kernel void fill_bytes(device uchar *destination [[buffer(0)]],
                       constant uchar &value [[buffer(1)]],
                       uint i [[thread_position_in_grid]])
{
    destination[i] = value;
}

// Rows of texels: strides of rows and planes, of the source and of the destination.
kernel void copy_texels(device const uchar *source [[buffer(0)]],
                        device uchar *destination [[buffer(1)]],
                        constant ulong4 &strides [[buffer(2)]],
                        uint3 i [[thread_position_in_grid]])
{
    destination[i.x + i.y * strides.z + i.z * strides.w] =
        source[i.x + i.y * strides.x + i.z * strides.y];
}
