#ifndef METALLOID_TEXTURE_DERIVATIVES
#define METALLOID_TEXTURE_DERIVATIVES
// Derivatives of reads and samples of textures. Those of texels are numbers in memory: level after
// level, slice after slice, row after row, four numbers each, or one of a depth texture. A texel is
// at a column, a row and a slice: a slice of a volume, a texture of an array, a face or a sample.

// Columns, rows and slices of a level.
template <typename T, access a>
static uint3 adjoint_extents(texture1d<T, a> t, uint lod) {
  return uint3(t.get_width(lod), 1, 1);
}
template <typename T, access a>
static uint3 adjoint_extents(texture1d_array<T, a> t, uint lod) {
  return uint3(t.get_width(lod), 1, t.get_array_size());
}
template <typename T, access a>
static uint3 adjoint_extents(texture2d<T, a> t, uint lod) {
  return uint3(t.get_width(lod), t.get_height(lod), 1);
}
template <typename T, access a>
static uint3 adjoint_extents(depth2d<T, a> t, uint lod) {
  return uint3(t.get_width(lod), t.get_height(lod), 1);
}
template <typename T, access a>
static uint3 adjoint_extents(texture2d_array<T, a> t, uint lod) {
  return uint3(t.get_width(lod), t.get_height(lod), t.get_array_size());
}
template <typename T, access a>
static uint3 adjoint_extents(depth2d_array<T, a> t, uint lod) {
  return uint3(t.get_width(lod), t.get_height(lod), t.get_array_size());
}
template <typename T, access a>
static uint3 adjoint_extents(texture3d<T, a> t, uint lod) {
  return uint3(t.get_width(lod), t.get_height(lod), t.get_depth(lod));
}
template <typename T, access a>
static uint3 adjoint_extents(texturecube<T, a> t, uint lod) {
  return uint3(t.get_width(lod), t.get_height(lod), 6);
}
template <typename T, access a>
static uint3 adjoint_extents(depthcube<T, a> t, uint lod) {
  return uint3(t.get_width(lod), t.get_height(lod), 6);
}
template <typename T, access a>
static uint3 adjoint_extents(texturecube_array<T, a> t, uint lod) {
  return uint3(t.get_width(lod), t.get_height(lod), 6 * t.get_array_size());
}
template <typename T, access a>
static uint3 adjoint_extents(texture2d_ms<T, a> t, uint) {
  return uint3(t.get_width(), t.get_height(), t.get_num_samples());
}
template <typename T, access a>
static uint3 adjoint_extents(texture_buffer<T, a> t, uint) {
  return uint3(t.get_width(), 1, 1);
}

// What a sample outside of a texture is with clamp_to_zero: 0, or opaque black without alpha.
constexpr constant float adjoint_outside = -8;
template <typename Texture>
static float4 adjoint_black(Texture) {
  return float4(0);
}
template <typename T>
static float4 adjoint_black(texture1d<T, access::sample> t) {
  constexpr sampler zeros(address::clamp_to_zero);
  return float4(t.sample(zeros, adjoint_outside));
}
template <typename T>
static float4 adjoint_black(texture1d_array<T, access::sample> t) {
  constexpr sampler zeros(address::clamp_to_zero);
  return float4(t.sample(zeros, adjoint_outside, 0));
}
template <typename T>
static float4 adjoint_black(texture2d<T, access::sample> t) {
  constexpr sampler zeros(address::clamp_to_zero);
  return float4(t.sample(zeros, float2(adjoint_outside), level(0)));
}
template <typename T>
static float4 adjoint_black(texture2d_array<T, access::sample> t) {
  constexpr sampler zeros(address::clamp_to_zero);
  return float4(t.sample(zeros, float2(adjoint_outside), 0, level(0)));
}
template <typename T>
static float4 adjoint_black(texture3d<T, access::sample> t) {
  constexpr sampler zeros(address::clamp_to_zero);
  return float4(t.sample(zeros, float3(adjoint_outside), level(0)));
}

// A texel.
template <typename T, access a>
static float4 adjoint_read(texture1d<T, a> t, uint3 at, uint lod) {
  return float4(t.read(at.x, lod));
}
template <typename T, access a>
static float4 adjoint_read(texture1d_array<T, a> t, uint3 at, uint lod) {
  return float4(t.read(at.x, at.z, lod));
}
template <typename T, access a>
static float4 adjoint_read(texture2d<T, a> t, uint3 at, uint lod) {
  return float4(t.read(at.xy, lod));
}
template <typename T, access a>
static float4 adjoint_read(depth2d<T, a> t, uint3 at, uint lod) {
  return float4(t.read(at.xy, lod), 0, 0, 0);
}
template <typename T, access a>
static float4 adjoint_read(texture2d_array<T, a> t, uint3 at, uint lod) {
  return float4(t.read(at.xy, at.z, lod));
}
template <typename T, access a>
static float4 adjoint_read(depth2d_array<T, a> t, uint3 at, uint lod) {
  return float4(t.read(at.xy, at.z, lod), 0, 0, 0);
}
template <typename T, access a>
static float4 adjoint_read(texture3d<T, a> t, uint3 at, uint lod) {
  return float4(t.read(at, lod));
}
template <typename T, access a>
static float4 adjoint_read(texturecube<T, a> t, uint3 at, uint lod) {
  return float4(t.read(at.xy, at.z, lod));
}
template <typename T, access a>
static float4 adjoint_read(depthcube<T, a> t, uint3 at, uint lod) {
  return float4(t.read(at.xy, at.z, lod), 0, 0, 0);
}
template <typename T, access a>
static float4 adjoint_read(texturecube_array<T, a> t, uint3 at, uint lod) {
  return float4(t.read(at.xy, at.z % 6, at.z / 6, lod));
}

// The number of a texel; the largest one if there is no such texel.
template <typename Texture>
static ulong adjoint_texel(Texture t, uint3 at, uint lod) {
  ulong first = 0;
  uint3 extents = adjoint_extents(t, 0);
  for (uint level = 0; level < lod; ++level) {
    first += ulong(extents.x) * extents.y * extents.z;
    extents = adjoint_extents(t, level + 1);  // 0 beyond the last level
  }
  if (any(at >= extents)) return ~0ul;
  return first + (ulong(at.z) * extents.y + at.y) * extents.x + at.x;
}

// ---- derivatives of texels in memory ------------------------------------------------------------
// Of a texture whose texels have no derivatives.
struct adjoint_constant {};

static void adjoint_add(adjoint_constant, ulong, float4) {}
static void adjoint_add(device atomic_float *d, ulong texel, float value) {
  if (texel != ~0ul && value != 0)
    atomic_fetch_add_explicit(&d[texel], value, memory_order_relaxed);
}
static void adjoint_add(device atomic_float *d, ulong texel, float4 value) {
  if (texel == ~0ul) return;
  for (int k = 0; k < 4; ++k)
    if (value[k] != 0) atomic_fetch_add_explicit(&d[4 * texel + k], value[k], memory_order_relaxed);
}
// Those of depth textures have one number.
struct adjoint_depth {
  device atomic_float *d;
};
static void adjoint_add(adjoint_depth depth, ulong texel, float4 value) {
  adjoint_add(depth.d, texel, value.x);
}

template <typename Number>
static Number adjoint_load(device const Number *d, ulong texel) {
  return texel == ~0ul ? Number(0) : d[texel];
}
template <typename Number>
static void adjoint_store(device Number *d, ulong texel, Number value) {
  if (texel != ~0ul) d[texel] = value;
}

static float4 tangent_load(adjoint_constant, ulong) { return float4(0); }
static float4 tangent_load(device const float4 *d, ulong texel) { return adjoint_load(d, texel); }
static float4 tangent_load(device const float *d, ulong texel) {
  return float4(adjoint_load(d, texel), 0, 0, 0);
}

// ---- samples ------------------------------------------------------------------------------------
// The settings of a sampler, as numbers of MSL's enumerations.
struct adjoint_sampler {
  uint is_pixel, s_address, t_address, r_address, border_color, mag_filter, min_filter, mip_filter;
};

// Where a sample is: a position along `axes` axes, the slice of an array.
struct adjoint_position {
  float3 coord;
  int3 offset;
  float slice;
  int axes;
};

// The texels of an axis that a sample lies between, -1 for the border; the weight of the second one,
// and its derivative by the coordinate.
struct adjoint_axis {
  int texels[2];
  float weight, slope;
};

static int adjoint_wrap(uint address, int i, int size) {
  if (address == 1) return clamp(i, 0, size - 1);  // to the edge
  if (address == 2) {  // repeat
    i %= size;
    return i < 0 ? i + size : i;
  }
  if (address == 3) {  // mirrored
    i %= 2 * size;
    i = i < 0 ? i + 2 * size : i;
    return i < size ? i : 2 * size - 1 - i;
  }
  return uint(i) < uint(size) ? i : -1;
}

static adjoint_axis adjoint_axis_at(uint address, bool is_pixel, bool is_linear, float u, int size,
                                    int offset) {
  if (!is_pixel) {
    if (address == 2) u -= floor(u);
    if (address == 3) u -= 2 * floor(0.5f * u);
    u *= float(size);
  }
  u = fmin(fmax(u, -9.0f), 2.0f * size + 8);  // far outside all is the same
  adjoint_axis axis = {{-1, -1}, 0, 0};
  if (is_linear) u -= 0.5f;
  const int first = int(floor(u)) + offset;
  axis.texels[0] = adjoint_wrap(address, first, size);
  if (is_linear) {
    axis.texels[1] = adjoint_wrap(address, first + 1, size);
    axis.weight = u - floor(u);
    axis.slope = is_pixel ? 1 : size;
  }
  return axis;
}

// The texels of a level that a sample takes the mean of.
struct adjoint_footprint {
  adjoint_axis axes[3];
  uint slice;
  int count;
};

// One of them.
struct adjoint_corner {
  uint3 at;
  bool is_border;
  float weight;
  float3 slopes;  // derivatives of the weight by the coordinates
};

template <typename Texture>
static adjoint_footprint adjoint_footprint_of(Texture t, adjoint_sampler s, bool is_linear,
                                              adjoint_position p, uint lod) {
  const uint3 extents = adjoint_extents(t, lod);
  const uint addresses[3] = {s.s_address, s.t_address, s.r_address};
  adjoint_footprint footprint;
  for (int k = 0; k < 3; ++k) {
    if (k < p.axes) {
      footprint.axes[k] = adjoint_axis_at(addresses[k], s.is_pixel != 0, is_linear, p.coord[k],
                                          int(extents[k]), p.offset[k]);
    } else {
      footprint.axes[k] = {{0, -1}, 0, 0};
    }
  }
  footprint.slice = 0;
  if (p.axes < 3) footprint.slice = uint(clamp(rint(p.slice), 0.0f, float(extents.z - 1)));
  footprint.count = is_linear ? 1 << p.axes : 1;
  return footprint;
}

static adjoint_corner adjoint_corner_of(adjoint_footprint footprint, int number) {
  adjoint_corner corner = {uint3(0), false, 1, float3(1)};
  for (int k = 0; k < 3; ++k) {
    const int second = number >> k & 1;
    const adjoint_axis axis = footprint.axes[k];
    const float weight = second ? axis.weight : 1 - axis.weight;
    corner.at[k] = uint(axis.texels[second]);
    corner.is_border = corner.is_border || axis.texels[second] < 0;
    corner.weight *= weight;
    for (int other = 0; other < 3; ++other)
      corner.slopes[other] *= other != k ? weight : second ? axis.slope : -axis.slope;
  }
  corner.at.z += footprint.slice;
  return corner;
}

template <typename Texture>
static float4 adjoint_color(Texture t, adjoint_sampler s, adjoint_corner corner, uint lod) {
  if (!corner.is_border) return adjoint_read(t, corner.at, lod);
  if (s.s_address == 0 || s.t_address == 0) return adjoint_black(t);
  const float color = s.border_color == 2 ? 1 : 0;
  return float4(color, color, color, s.border_color == 0 ? 0 : 1);
}

// Adds to the derivatives of the texels of a level. The result: the derivatives by the coordinates,
// and the product of the sample and its adjoint `g`.
template <typename Texture, typename Texels>
static float4 adjoint_sample_level(Texture t, Texels d, adjoint_sampler s, bool is_linear,
                                   adjoint_position p, uint lod, float part, float4 g) {
  const adjoint_footprint footprint = adjoint_footprint_of(t, s, is_linear, p, lod);
  float4 result = float4(0);
  for (int k = 0; k < footprint.count; ++k) {
    const adjoint_corner corner = adjoint_corner_of(footprint, k);
    result += dot(adjoint_color(t, s, corner, lod), g) * float4(corner.slopes, corner.weight);
    if (!corner.is_border)
      adjoint_add(d, adjoint_texel(t, corner.at, lod), part * corner.weight * g);
  }
  return result;
}

// The levels between which a sample is, and the weight of the second one.
struct adjoint_levels {
  uint first;
  float weight;
  bool is_linear, is_between;
};

template <typename Texture>
static adjoint_levels adjoint_levels_of(Texture t, adjoint_sampler s, float lod) {
  adjoint_levels levels = {0, 0, (lod > 0 ? s.min_filter : s.mag_filter) != 0, false};
  const float last = float(t.get_num_mip_levels()) - 1;
  if (s.mip_filter == 0 || last == 0) return levels;
  const float level = clamp(lod, 0.0f, last);
  if (s.mip_filter == 1) {
    levels.first = min(uint(level + 0.5f), uint(last));
  } else {
    levels.first = uint(level);
    levels.weight = level - floor(level);
    levels.is_between = lod > 0 && lod < last;
  }
  return levels;
}

// Adds to the derivatives of texels. The result: those by the coordinates and by the level.
template <typename Texture, typename Texels>
static float4 adjoint_sample(Texture t, Texels d, adjoint_sampler s, adjoint_position p, float lod,
                             float4 g) {
  const adjoint_levels levels = adjoint_levels_of(t, s, lod);
  const float4 first = adjoint_sample_level(t, d, s, levels.is_linear, p, levels.first,
                                            1 - levels.weight, g);
  if (!levels.is_between) return float4(first.xyz, 0);
  const float4 second = adjoint_sample_level(t, d, s, levels.is_linear, p, levels.first + 1,
                                             levels.weight, g);
  return float4(mix(first.xyz, second.xyz, levels.weight), second.w - first.w);
}

// The tangent of a sample of a level, from those of texels and coordinates, and the sample.
struct tangent_pair {
  float4 tangent, value;
};

template <typename Texture, typename Texels>
static tangent_pair tangent_sample_level(Texture t, Texels d, adjoint_sampler s, bool is_linear,
                                         adjoint_position p, uint lod, float3 dot_coord) {
  const adjoint_footprint footprint = adjoint_footprint_of(t, s, is_linear, p, lod);
  tangent_pair result = {float4(0), float4(0)};
  for (int k = 0; k < footprint.count; ++k) {
    const adjoint_corner corner = adjoint_corner_of(footprint, k);
    const float4 color = adjoint_color(t, s, corner, lod);
    result.value += corner.weight * color;
    result.tangent += dot(corner.slopes, dot_coord) * color;
    if (!corner.is_border)
      result.tangent += corner.weight * tangent_load(d, adjoint_texel(t, corner.at, lod));
  }
  return result;
}

template <typename Texture, typename Texels>
static float4 tangent_sample(Texture t, Texels d, adjoint_sampler s, adjoint_position p, float lod,
                             float3 dot_coord, float dot_lod) {
  const adjoint_levels levels = adjoint_levels_of(t, s, lod);
  const tangent_pair first =
      tangent_sample_level(t, d, s, levels.is_linear, p, levels.first, dot_coord);
  if (!levels.is_between) return first.tangent;
  const tangent_pair second =
      tangent_sample_level(t, d, s, levels.is_linear, p, levels.first + 1, dot_coord);
  return mix(first.tangent, second.tangent, levels.weight) +
         dot_lod * (second.value - first.value);
}

// A component of the four texels that a linear filter takes, counter-clockwise from the lower left.
static int adjoint_gathered(int corner) { return corner == 0 ? 3 : corner == 1 ? 2 : corner - 2; }

template <typename Texture, typename Texels>
static void adjoint_gather(Texture t, Texels d, adjoint_sampler s, adjoint_position p, int which,
                           float4 g) {
  const adjoint_footprint footprint = adjoint_footprint_of(t, s, true, p, 0);
  for (int k = 0; k < 4; ++k) {
    const adjoint_corner corner = adjoint_corner_of(footprint, k);
    float4 value = float4(0);
    value[which] = g[adjoint_gathered(k)];
    if (!corner.is_border) adjoint_add(d, adjoint_texel(t, corner.at, 0), value);
  }
}

template <typename Texture, typename Texels>
static float4 tangent_gather(Texture t, Texels d, adjoint_sampler s, adjoint_position p, int which) {
  const adjoint_footprint footprint = adjoint_footprint_of(t, s, true, p, 0);
  float4 result = float4(0);
  for (int k = 0; k < 4; ++k) {
    const adjoint_corner corner = adjoint_corner_of(footprint, k);
    if (!corner.is_border)
      result[adjoint_gathered(k)] = tangent_load(d, adjoint_texel(t, corner.at, 0))[which];
  }
  return result;
}
#endif
