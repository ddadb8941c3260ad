// Depth textures: one component, which can be compared with a reference value.
//
// A comparison is `value compared texel`, as Metal's compare functions say it; linear filtering
// blends the outcomes of the comparisons.
#pragma once

#include "metal_texture.h"

namespace metalloid {

struct comparison {
  metal::compare_func function;
  float value;

  METALLOID_INLINE comparison(metal::sampler s, float value)
      : function(metal::compare_func(sampler_compare::get(s.word))), value(value) {}

  METALLOID_INLINE metal::float4 operator()(metal::float4 texel) const {
    return metal::float4(float(holds(texel.x)));
  }

 private:
  METALLOID_INLINE bool holds(float texel) const {
    switch (function) {
      case metal::compare_func::less: return value < texel;
      case metal::compare_func::less_equal: return value <= texel;
      case metal::compare_func::greater: return value > texel;
      case metal::compare_func::greater_equal: return value >= texel;
      case metal::compare_func::equal: return value == texel;
      case metal::compare_func::not_equal: return value != texel;
      case metal::compare_func::always: return true;
      default: return false;
    }
  }
};

}  // namespace metalloid

namespace metal {

template <class T, access mode = access::sample,
          memory_coherence coherence = memory_coherence_threadgroup>
struct depth2d : texture2d<T, mode> {
  static constexpr bool is_depth = true;

  template <class Coordinate>
  METALLOID_INLINE T read(Coordinate coord, uint lod = 0) const {
    return texture2d<T, mode>::read(coord, lod).x;
  }
  template <class... Options>
  METALLOID_INLINE T sample(sampler s, float2 coord, Options... options) const {
    return texture2d<T, mode>::sample(s, coord, options...).x;
  }
  template <class... Options>
  METALLOID_INLINE T sample_compare(sampler s, float2 coord, float value,
                                    Options... options) const {
    return this->template filtered<2>(s, coord, 0, metalloid::options_of(options...),
                                      metalloid::comparison(s, value)).x;
  }
  METALLOID_INLINE vec<T, 4> gather_compare(sampler s, float2 coord, float value,
                                            int2 offset = int2(0)) const {
    return this->gathered(s, coord, 0, offset, component::x, metalloid::comparison(s, value));
  }
};

template <class T, access mode = access::sample,
          memory_coherence coherence = memory_coherence_threadgroup>
struct depth2d_array : texture2d_array<T, mode> {
  static constexpr bool is_depth = true;

  template <class Coordinate>
  METALLOID_INLINE T read(Coordinate coord, uint array, uint lod = 0) const {
    return texture2d_array<T, mode>::read(coord, array, lod).x;
  }
  template <class Layer, class... Options>
  METALLOID_INLINE T sample(sampler s, float2 coord, Layer array, Options... options) const {
    return texture2d_array<T, mode>::sample(s, coord, array, options...).x;
  }
  template <class Layer, class... Options>
  METALLOID_INLINE T sample_compare(sampler s, float2 coord, Layer array, float value,
                                    Options... options) const {
    return this->template filtered<2>(s, coord, layer(array), metalloid::options_of(options...),
                                      metalloid::comparison(s, value)).x;
  }
  template <class Layer>
  METALLOID_INLINE vec<T, 4> gather_compare(sampler s, float2 coord, Layer array, float value,
                                            int2 offset = int2(0)) const {
    return this->gathered(s, coord, layer(array), offset, component::x,
                          metalloid::comparison(s, value));
  }

 private:
  template <class Layer>
  METALLOID_INLINE uint layer(Layer array) const {
    return metalloid::layer_of(array, this->get_array_size());
  }
};

template <class T, access mode = access::read,
          memory_coherence coherence = memory_coherence_threadgroup>
struct depth2d_ms : texture2d_ms<T, mode> {
  static constexpr bool is_depth = true;

  METALLOID_INLINE T read(uint2 coord, uint sample) const {
    return texture2d_ms<T, mode>::read(coord, sample).x;
  }
};

template <class T, access mode = access::sample,
          memory_coherence coherence = memory_coherence_threadgroup>
struct depthcube : texturecube<T, mode> {
  static constexpr bool is_depth = true;

  METALLOID_INLINE T read(uint2 coord, uint face, uint lod = 0) const {
    return texturecube<T, mode>::read(coord, face, lod).x;
  }
  template <class... Options>
  METALLOID_INLINE T sample(sampler s, float3 direction, Options... options) const {
    return texturecube<T, mode>::sample(s, direction, options...).x;
  }
  template <class... Options>
  METALLOID_INLINE T sample_compare(sampler s, float3 direction, float value,
                                    Options... options) const {
    return this->filtered_cube(s, direction, 0, metalloid::options_of(options...),
                               metalloid::comparison(s, value)).x;
  }
  METALLOID_INLINE vec<T, 4> gather_compare(sampler s, float3 direction, float value) const {
    return this->gathered_cube(direction, 0, component::x, metalloid::comparison(s, value));
  }
};

}  // namespace metal
