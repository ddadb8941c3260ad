// Textures (MSL specification, "Textures" and "Texture Functions").
//
// A texture is the address of its descriptor. Texels are read and written by plain loads and
// stores; a texel that does not exist reads as zero and is not written.
#pragma once

#include "texture_atomics.h"

namespace metalloid {

// Overloads for 16-bit coordinates take exactly those; what converts goes to the 32-bit ones.
template <class C, int axes>
using if_ushorts = metal::enable_if_t<metal::is_same_v<C, coordinates_t<ushort, axes>>, int>;

// Textures whose texels are named by their coordinate alone.
template <class T, metal::access mode, texture_kind kind, int axes>
struct plain_texture : atomic_texture<T, mode, kind, axes> {
  using texel = metal::vec<T, 4>;
  using uints = coordinates_t<uint, axes>;
  using floats = coordinates_t<float, axes>;

  METALLOID_INLINE texel read(uints coord, uint lod = 0) const {
    return this->load(grid_position(coord, 0), lod);
  }
  template <class C, if_ushorts<C, axes> = 0>
  METALLOID_INLINE texel read(C coord, ushort lod = 0) const {
    return this->load(grid_position(coord, 0), lod);
  }
  METALLOID_INLINE void write(texel color, uints coord, uint lod = 0) const {
    this->store(color, grid_position(coord, 0), lod);
  }
  template <class C, if_ushorts<C, axes> = 0>
  METALLOID_INLINE void write(texel color, C coord, ushort lod = 0) const {
    this->store(color, grid_position(coord, 0), lod);
  }
  template <class... Options>
  METALLOID_INLINE texel sample(metal::sampler s, floats coord, Options... options) const {
    return this->template filtered<axes>(s, coord, 0, options_of(options...));
  }
};

// Arrays of such textures.
template <class T, metal::access mode, texture_kind kind, int axes>
struct layered_texture : atomic_texture<T, mode, kind, axes> {
  using texel = metal::vec<T, 4>;
  using uints = coordinates_t<uint, axes>;
  using floats = coordinates_t<float, axes>;

  METALLOID_INLINE texel read(uints coord, uint array, uint lod = 0) const {
    return this->load(grid_position(coord, array), lod);
  }
  template <class C, if_ushorts<C, axes> = 0>
  METALLOID_INLINE texel read(C coord, ushort array, ushort lod = 0) const {
    return this->load(grid_position(coord, array), lod);
  }
  METALLOID_INLINE void write(texel color, uints coord, uint array, uint lod = 0) const {
    this->store(color, grid_position(coord, array), lod);
  }
  template <class C, if_ushorts<C, axes> = 0>
  METALLOID_INLINE void write(texel color, C coord, ushort array, ushort lod = 0) const {
    this->store(color, grid_position(coord, array), lod);
  }
  template <class Layer, class... Options>
  METALLOID_INLINE texel sample(metal::sampler s, floats coord, Layer array,
                                Options... options) const {
    return this->template filtered<axes>(s, coord, layer_of(array, get_array_size()),
                                         options_of(options...));
  }
  METALLOID_INLINE uint get_array_size() const { return this->descriptor().level[0].slices; }
};

}  // namespace metalloid

namespace metal {

template <class T, access mode = access::sample,
          memory_coherence coherence = memory_coherence_threadgroup>
struct texture1d : metalloid::plain_texture<T, mode, metalloid::texture_kind::d1, 1> {};

template <class T, access mode = access::sample,
          memory_coherence coherence = memory_coherence_threadgroup>
struct texture1d_array
    : metalloid::layered_texture<T, mode, metalloid::texture_kind::d1_array, 1> {};

template <class T, access mode = access::sample,
          memory_coherence coherence = memory_coherence_threadgroup>
struct texture2d : metalloid::plain_texture<T, mode, metalloid::texture_kind::d2, 2> {
  METALLOID_INLINE uint get_height(uint lod = 0) const { return this->height_of(lod); }
  METALLOID_INLINE vec<T, 4> gather(sampler s, float2 coord, int2 offset = int2(0),
                                    component which = component::x) const {
    return this->gathered(s, coord, 0, offset, which);
  }
};

template <class T, access mode = access::sample,
          memory_coherence coherence = memory_coherence_threadgroup>
struct texture2d_array : metalloid::layered_texture<T, mode, metalloid::texture_kind::d2_array, 2> {
  METALLOID_INLINE uint get_height(uint lod = 0) const { return this->height_of(lod); }
  template <class Layer>
  METALLOID_INLINE vec<T, 4> gather(sampler s, float2 coord, Layer array, int2 offset = int2(0),
                                    component which = component::x) const {
    const uint layer = metalloid::layer_of(array, this->get_array_size());
    return this->gathered(s, coord, layer, offset, which);
  }
};

template <class T, access mode = access::sample,
          memory_coherence coherence = memory_coherence_threadgroup>
struct texture3d : metalloid::plain_texture<T, mode, metalloid::texture_kind::d3, 3> {
  METALLOID_INLINE uint get_height(uint lod = 0) const { return this->height_of(lod); }
  METALLOID_INLINE uint get_depth(uint lod = 0) const { return this->slices_of(lod); }
};

template <class T, access mode = access::sample,
          memory_coherence coherence = memory_coherence_threadgroup>
struct texturecube : metalloid::texture_base<T, mode, metalloid::texture_kind::cube> {
  METALLOID_INLINE uint get_height(uint lod = 0) const { return this->height_of(lod); }
  METALLOID_INLINE vec<T, 4> read(uint2 coord, uint face, uint lod = 0) const {
    return this->load(uint3(coord, face), lod);
  }
  METALLOID_INLINE void write(vec<T, 4> color, uint2 coord, uint face, uint lod = 0) const {
    this->store(color, uint3(coord, face), lod);
  }
  template <class... Options>
  METALLOID_INLINE vec<T, 4> sample(sampler s, float3 direction, Options... options) const {
    return this->filtered_cube(s, direction, 0, metalloid::options_of(options...));
  }
  METALLOID_INLINE vec<T, 4> gather(sampler s, float3 direction,
                                    component which = component::x) const {
    return this->gathered_cube(direction, 0, which);
  }
};

template <class T, access mode = access::sample,
          memory_coherence coherence = memory_coherence_threadgroup>
struct texturecube_array : metalloid::texture_base<T, mode, metalloid::texture_kind::cube_array> {
  METALLOID_INLINE uint get_height(uint lod = 0) const { return this->height_of(lod); }
  METALLOID_INLINE vec<T, 4> read(uint2 coord, uint face, uint array, uint lod = 0) const {
    return this->load(uint3(coord, 6 * array + face), lod);
  }
  METALLOID_INLINE void write(vec<T, 4> color, uint2 coord, uint face, uint array,
                              uint lod = 0) const {
    this->store(color, uint3(coord, 6 * array + face), lod);
  }
  template <class Layer, class... Options>
  METALLOID_INLINE vec<T, 4> sample(sampler s, float3 direction, Layer array,
                                    Options... options) const {
    const uint layer = metalloid::layer_of(array, get_array_size());
    return this->filtered_cube(s, direction, layer, metalloid::options_of(options...));
  }
  template <class Layer>
  METALLOID_INLINE vec<T, 4> gather(sampler s, float3 direction, Layer array,
                                    component which = component::x) const {
    return this->gathered_cube(direction, metalloid::layer_of(array, get_array_size()), which);
  }
  METALLOID_INLINE uint get_array_size() const { return this->slices_of(0) / 6; }
};

template <class T, access mode = access::read,
          memory_coherence coherence = memory_coherence_threadgroup>
struct texture2d_ms : metalloid::texture_base<T, mode, metalloid::texture_kind::d2_ms> {
  METALLOID_INLINE vec<T, 4> read(uint2 coord, uint sample) const {
    return this->load(uint3(coord, sample), 0);
  }
  METALLOID_INLINE uint get_height() const { return this->height_of(0); }
  METALLOID_INLINE uint get_num_samples() const { return this->slices_of(0); }
};

template <class T, access mode = access::read,
          memory_coherence coherence = memory_coherence_threadgroup>
struct texture_buffer : metalloid::atomic_texture<T, mode, metalloid::texture_kind::buffer, 1> {
  METALLOID_INLINE vec<T, 4> read(uint coord) const { return this->load(uint3(coord, 0, 0), 0); }
  METALLOID_INLINE void write(vec<T, 4> color, uint coord) const {
    this->store(color, uint3(coord, 0, 0), 0);
  }
};

template <class T, metalloid::if_texture<T> = 0>
METALLOID_INLINE bool is_null_texture(T texture) {
  return texture.address() == 0;
}

}  // namespace metal
