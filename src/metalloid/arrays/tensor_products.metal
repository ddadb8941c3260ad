// Products in blocks as the tensor cores of NVIDIA's GPUs have them: of halves, 16 of the depth at
// a time, and of floats that are rounded to the 11 bits of TF32, 8 at a time. Where
// METALLOID_TENSOR_BLOCKS is defined the functions of tensor_blocks.metal are instructions.
//
// Each simdgroup makes 64 x 64 sums. The depth goes through a ring of stages in threadgroup memory:
// while one is multiplied, those behind it come from memory. Blocks are taken from a stage while
// those before them are multiplied, so that nobody waits for them either.
namespace numpy {

// Rows and columns of a simdgroup.
constexpr constant uint tensor_side = 64;
constexpr constant uint tensor_blocks = tensor_side / 16;
constexpr constant uint tensor_stages = 4;
// Tiles below each other whose threadgroups follow each other, and use the same columns.
constexpr constant uint tensor_panel = 8;

// Elements that are moved together, which are 16 bytes; of the depth in a block and in a stage.
template <typename T>
constexpr uint tensor_group() { return 16 / sizeof(T); }
template <typename T>
constexpr uint tensor_depth() { return 32 / sizeof(T); }
template <typename T>
constexpr uint tensor_step() { return 2 * tensor_depth<T>(); }
// Of both factors, for so many simdgroups below and beside each other.
template <typename T, uint down, uint across>
constexpr uint tensor_stage() { return (down + across) * tensor_side * tensor_step<T>(); }
template <typename T, uint down, uint across>
constexpr uint tensor_room() { return tensor_stages * tensor_stage<T, down, across>(); }

// Where an element of a factor lies in a stage: in groups, as in the factor. Groups change places
// so that those of eight lines, which are read together, lie in different banks.
template <typename T, bool along_depth, uint lines>
METAL_FUNC uint tensor_place(uint line, uint depth) {
  constexpr uint each = tensor_group<T>(), step = tensor_step<T>();
  if (along_depth) {
    const uint turn = line * step / (8 * each) % (step / each);
    return line * step + ((depth / each) ^ turn) * each + depth % each;
  }
  const uint turn = sizeof(T) == 2 ? depth % 8 : depth % 4 * 2;
  return depth * lines + ((line / each) ^ turn) * each + line % each;
}

// A block of a factor for all lanes. Quarters of a left one are below each other first, those of a
// right one beside each other along the depth.
template <typename T, bool is_left, bool along_depth, uint lines>
METAL_FUNC void take_block(thread uint (&to)[4], threadgroup const T *stage, uint line, uint depth,
                           uint lane) {
  const uint second = lane / 8 % 2, third = lane / 16, each = tensor_group<T>();
  if (along_depth) {
    const uint from = tensor_place<T, true, lines>(line + lane % 8 + (is_left ? second : third) * 8,
                                                   depth + (is_left ? third : second) * each);
    load_blocks<false>(to, stage, from, lane);
  } else if (sizeof(T) == 2) {
    const uint from = tensor_place<T, false, lines>(line + (is_left ? second : third) * 8,
                                                    depth + lane % 8 + (is_left ? third : second) * 8);
    load_blocks<true>(to, stage, from, lane);
  } else {
    #pragma clang loop unroll(full)
    for (uint k = 0; k < 4; ++k) {
      const uint below = is_left ? k % 2 : k / 2, behind = is_left ? k / 2 : k % 2;
      const T element = stage[tensor_place<T, false, lines>(line + lane / 4 + below * 8,
                                                            depth + lane % 4 + behind * each)];
      to[k] = tensor_word<T>::of(element);
    }
  }
}

// One group, whole or with nothing beyond the end of the factor.
template <typename T, bool is_left, bool along_depth, bool is_whole, typename Factor>
METAL_FUNC uint4 bring_group(Factor factor, uint2 group, uint2 end) {
  constexpr uint each = tensor_group<T>();
  T got[each];
  #pragma clang loop unroll(full)
  for (uint e = 0; e < each; e += is_whole ? 4 : 1) {
    const uint line = group.x + (along_depth ? 0 : e), place = group.y + (along_depth ? e : 0);
    if (is_whole) {
      factor.four(is_left ? line : place, is_left ? place : line, got + e);
    } else {
      got[e] = T(0);
      if (line < end.x && place < end.y) {
        got[e] = is_left ? T(factor(line, place)) : T(factor(place, line));
      }
    }
  }
  return tensor_word<T>::group(got);
}

// A factor on its way to a stage: by copies if it lies in memory as it is, or through registers,
// where it is held until the next one begins.
template <typename T, bool is_left, bool along_depth, bool is_direct, uint lines, uint threads,
          typename Factor>
struct tensor_factor {
  static constexpr constant uint each = tensor_group<T>();
  static constexpr constant uint step = tensor_step<T>();
  static constexpr constant uint groups = lines * step / each / threads;

  Factor factor;
  uint first, own;
  uint2 end;
  uint4 held[groups];

  // The groups that a thread brings: a line and a place of the depth.
  METAL_FUNC uint2 group(uint k) const {
    const uint n = k * threads + own;
    return along_depth ? uint2(n / (step / each), n % (step / each) * each)
                       : uint2(n % (lines / each) * each, n / (lines / each));
  }
  METAL_FUNC uint place(uint k) const {
    return tensor_place<T, along_depth, lines>(group(k).x, group(k).y);
  }

  METAL_FUNC void begin(threadgroup T *stage, uint depth) {
    const bool is_whole = first + lines <= end.x && depth + step <= end.y;
    const uint2 start(first, depth);
    if (is_direct) {
      #pragma clang loop unroll(full)
      for (uint k = 0; k < groups; ++k) {
        const uint2 from = start + group(k);
        begin_copy(stage + place(k), factor.at(is_left ? from.x : from.y, is_left ? from.y : from.x),
                   from.x < end.x && from.y < end.y);
      }
    } else if (is_whole) {
      #pragma clang loop unroll(full)
      for (uint k = 0; k < groups; ++k) {
        held[k] = bring_group<T, is_left, along_depth, true>(factor, start + group(k), end);
      }
    } else {
      #pragma clang loop unroll(full)
      for (uint k = 0; k < groups; ++k) {
        held[k] = bring_group<T, is_left, along_depth, false>(factor, start + group(k), end);
      }
    }
  }

  METAL_FUNC void finish(threadgroup T *stage) const {
    if (!is_direct) {
      #pragma clang loop unroll(full)
      for (uint k = 0; k < groups; ++k) {
        *reinterpret_cast<threadgroup uint4 *>(stage + place(k)) = held[k];
      }
    }
  }
};

// Which tile a threadgroup makes: those that run together share what they read.
METAL_FUNC uint2 tensor_tile(uint2 group, uint2 tiles) {
  const uint index = group.y * tiles.x + group.x, panel = tensor_panel * tiles.x;
  const uint first = index / panel * tensor_panel, height = min(tiles.y - first, tensor_panel);
  return uint2(index % panel / height, first + index % panel % height);
}

template <typename T, uint down, uint across, bool left_down, bool right_down, bool left_direct,
          bool right_direct, typename Left, typename Right, typename Store>
METAL_FUNC void multiply_in_tensors(threadgroup T *tiles, Left left, Right right, Store store,
                                    uint3 size, uint3 group, uint own) {
  constexpr uint rows = down * tensor_side, columns = across * tensor_side;
  constexpr uint threads = down * across * 32, stage = tensor_stage<T, down, across>();
  constexpr uint step = tensor_step<T>(), depth = tensor_depth<T>();
  constexpr uint blocks = tensor_blocks, wide = 2 * blocks;
  const uint2 tile = tensor_tile(
      group.xy, uint2((size.y + columns - 1) / columns, (size.x + rows - 1) / rows));
  const uint row = tile.y * rows, column = tile.x * columns;
  const uint simdgroup = simd_broadcast_first(own / 32), lane = own % 32;
  const uint y = simdgroup / across * tensor_side, x = simdgroup % across * tensor_side;
  tensor_factor<T, true, !left_down, left_direct, rows, threads, Left> lefts{left, row, own,
                                                                            size.xz};
  tensor_factor<T, false, right_down, right_direct, columns, threads, Right> rights{
      right, column, own, size.yz};
  threadgroup T *before = tiles, *now = tiles;
  #pragma clang loop unroll(disable)
  for (uint s = 0; s < tensor_stages; ++s, before = now, now += stage) {
    if (s > 0) {
      lefts.finish(before);
      rights.finish(before + rows * step);
    }
    lefts.begin(now, s * step);
    rights.begin(now + rows * step, s * step);
    close_copies();
  }
  float sums[blocks][wide][4];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < blocks * wide * 4; ++k) {
    sums[k / (4 * wide)][k / 4 % wide][k % 4] = 0.0f;
  }
  wait_for_copies<tensor_stages - 1>();
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint a[2][blocks][4], b[2][blocks][4];
  #pragma clang loop unroll(full)
  for (uint i = 0; i < blocks; ++i) {
    take_block<T, true, !left_down, rows>(a[0][i], tiles, y + i * 16, 0, lane);
    take_block<T, false, right_down, columns>(b[0][i], tiles + rows * step, x + i * 16, 0, lane);
  }
  now = tiles;
  #pragma clang loop unroll(disable)
  for (uint k = 0; k < size.z; k += step) {
    threadgroup T *next = now == tiles + (tensor_stages - 1) * stage ? tiles : now + stage;
    #pragma clang loop unroll(full)
    for (uint j = 0; j < step; j += depth) {
      const uint which = j / depth % 2;
      const bool is_last = j + depth == step;
      if (is_last) {
        wait_for_copies<tensor_stages - 2>();
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      threadgroup const T *from = is_last ? next : now;
      #pragma clang loop unroll(full)
      for (uint i = 0; i < blocks; ++i) {
        take_block<T, true, !left_down, rows>(a[1 - which][i], from, y + i * 16, (j + depth) % step,
                                              lane);
        take_block<T, false, right_down, columns>(b[1 - which][i], from + rows * step, x + i * 16,
                                                  (j + depth) % step, lane);
      }
      if (is_last) {
        lefts.finish(before);
        rights.finish(before + rows * step);
        lefts.begin(now, k + tensor_stages * step);
        rights.begin(now + rows * step, k + tensor_stages * step);
        close_copies();
      }
      #pragma clang loop unroll(full)
      for (uint i = 0; i < blocks * 4 && sizeof(T) == 4; ++i) {
        a[which][i / 4][i % 4] = rounded_to_tf32(a[which][i / 4][i % 4]);
        b[which][i / 4][i % 4] = rounded_to_tf32(b[which][i / 4][i % 4]);
      }
      #pragma clang loop unroll(full)
      for (uint i = 0; i < blocks * wide; ++i) {
        const uint m = i / wide, n = i % wide;
        multiply_blocks<T>(sums[m][n], a[which][m], b[which][n / 2][n % 2 * 2],
                           b[which][n / 2][n % 2 * 2 + 1], lane);
      }
    }
    before = now;
    now = next;
  }
  // A lane has two neighbours of a row, and two of the eighth below it. Of a pair of lanes one
  // takes the upper four and one the lower.
  const bool is_lower = lane % 2 == 1;
  #pragma clang loop unroll(full)
  for (uint i = 0; i < blocks * wide * 2; ++i) {
    thread float(&four)[4] = sums[i / 2 / wide][i / 2 % wide];
    const uint k = i % 2;
    const float got = simd_shuffle_xor(is_lower ? four[k] : four[2 + k], ushort(1));
    four[2 + k] = is_lower ? four[2 + k] : got;
    four[k] = is_lower ? got : four[k];
  }
  const uint first_row = row + y + lane / 4 + (is_lower ? 8 : 0);
  const uint first_column = column + x + lane % 4 / 2 * 4;
  #pragma clang loop unroll(full)
  for (uint i = 0; i < blocks * wide; ++i) {
    const thread float(&four)[4] = sums[i / wide][i % wide];
    const uint to_row = first_row + i / wide * 16, to = first_column + i % wide * 8;
    if (to_row < size.x && to + 4 <= size.y) {
      store.four(to_row, to, four);
    } else if (to_row < size.x) {
      #pragma clang loop unroll(full)
      for (uint e = 0; e < 3; ++e) {
        if (to + e < size.y) {
          store(to_row, to + e, four[e]);
        }
      }
    }
  }
}

}  // namespace numpy
