// Products in blocks as the tensor cores of NVIDIA's GPUs have them: of halves, 16 of the depth at
// a time, and of floats that are rounded to the 11 bits of TF32, 8 at a time. Where
// METALLOID_TENSOR_BLOCKS is defined the functions of tensor_blocks.metal are instructions.
//
// Each simdgroup makes 64 x 64 sums. The depth goes through a ring of stages in threadgroup memory:
// while one is multiplied, the next ones are loaded from memory. Blocks are loaded from a stage
// while the blocks before them are multiplied, which hides their latency too.
namespace numpy {

// Rows and columns of a simdgroup.
constexpr constant uint simdgroup_extent = 64;
constexpr constant uint tensor_blocks = simdgroup_extent / 16;
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
// Elements of both factors, for `down` times `across` simdgroups.
template <typename T, uint down, uint across>
constexpr uint tensor_stage() { return (down + across) * simdgroup_extent * tensor_step<T>(); }
template <typename T, uint down, uint across>
constexpr uint tensor_capacity() { return tensor_stages * tensor_stage<T, down, across>(); }

// The index of an element of a factor in a stage: in groups, as in the factor. Groups are swapped
// so that those of eight lines, which are read together, lie in different banks.
template <typename T, bool along_depth, uint lines>
METAL_FUNC uint tensor_index(uint line, uint depth) {
  constexpr uint each = tensor_group<T>(), step = tensor_step<T>();
  if (along_depth) {
    const uint turn = line * step / (8 * each) % (step / each);
    return line * step + ((depth / each) ^ turn) * each + depth % each;
  }
  const uint turn = sizeof(T) == 2 ? depth % 8 : depth % 4 * 2;
  return depth * lines + ((line / each) ^ turn) * each + line % each;
}

// A block of a factor for all lanes. Quarters of a left one are below each other first, those of a
// right one adjacent along the depth.
template <typename T, bool is_left, bool along_depth, uint lines>
METAL_FUNC void take_block(thread uint (&to)[4], threadgroup const T *stage, uint line, uint depth,
                           uint lane) {
  const uint second = lane / 8 % 2, third = lane / 16, each = tensor_group<T>();
  if (along_depth) {
    const uint from = tensor_index<T, true, lines>(line + lane % 8 + (is_left ? second : third) * 8,
                                                   depth + (is_left ? third : second) * each);
    load_blocks<false>(to, stage, from, lane);
  } else if (sizeof(T) == 2) {
    const uint from = tensor_index<T, false, lines>(line + (is_left ? second : third) * 8,
                                                    depth + lane % 8 + (is_left ? third : second) * 8);
    load_blocks<true>(to, stage, from, lane);
  } else {
    #pragma clang loop unroll(full)
    for (uint k = 0; k < 4; ++k) {
      const uint below = is_left ? k % 2 : k / 2, outer = is_left ? k / 2 : k % 2;
      const T element = stage[tensor_index<T, false, lines>(line + lane / 4 + below * 8,
                                                            depth + lane % 4 + outer * each)];
      to[k] = tensor_word<T>::of(element);
    }
  }
}

// The transfer of a factor to a stage. A factor that is stored in memory is copied, 16 bytes at a
// time. Otherwise its operands are loaded four by four, held in registers during a multiplication,
// and the computed elements stored. Beyond its end are zeros; valid addresses are read for them to
// avoid branches.
template <typename T, bool is_left, bool along_depth, bool is_copied, uint lines, uint threads,
          typename Factor>
struct tensor_factor {
  static constexpr constant uint size = tensor_group<T>();
  static constexpr constant uint step = tensor_step<T>();
  static constexpr constant uint groups = lines * step / size / threads;
  static constexpr constant uint fours = size / 4;

  Factor factor;
  uint first, own;
  uint2 end;
  typename Factor::Fetched held[groups * fours];
  uint held_depth;

  // The groups that a thread loads: a line and an index along the depth.
  METAL_FUNC uint2 group(uint k) const {
    const uint n = k * threads + own;
    return along_depth ? uint2(n / (step / size), n % (step / size) * size)
                       : uint2(n % (lines / size) * size, n / (lines / size));
  }
  METAL_FUNC uint factor_index(uint k) const {
    return tensor_index<T, along_depth, lines>(group(k).x, group(k).y);
  }
  METAL_FUNC bool is_inside(uint2 at) const { return at.x < end.x && at.y < end.y; }

  METAL_FUNC void copy(threadgroup T *stage, uint depth) {
    #pragma clang loop unroll(full)
    for (uint k = 0; k < groups && is_copied; ++k) {
      const uint2 at = group(k) + uint2(first, depth);
      begin_copy(stage + factor_index(k), factor.at(is_left ? at.x : at.y, is_left ? at.y : at.x),
                 is_inside(at));
    }
  }

  // Where four elements lie in the factor, and the last of them that is inside.
  METAL_FUNC uint2 four_at(uint k) const {
    const uint e = k % fours * 4;
    return group(k / fours) + uint2(first, held_depth) + (along_depth ? uint2(0, e) : uint2(e, 0));
  }
  METAL_FUNC uint last_of(uint2 at) const {
    return Factor::has_fours ? 3 : min(along_depth ? end.y - at.y : end.x - at.x, 4u) - 1;
  }

  METAL_FUNC void fetch(uint depth) {
    held_depth = depth;
    #pragma clang loop unroll(full)
    for (uint k = 0; k < groups * fours && !is_copied; ++k) {
      const uint2 at = is_inside(four_at(k)) ? four_at(k) : uint2(0);
      held[k] = factor.fetch(is_left ? at.x : at.y, is_left ? at.y : at.x, last_of(at));
    }
  }

  METAL_FUNC void put(threadgroup T *stage) const {
    #pragma clang loop unroll(full)
    for (uint k = 0; k < groups && !is_copied; ++k) {
      T elements[size];
      #pragma clang loop unroll(full)
      for (uint e = 0; e < size; e += 4) {
        const uint which = (k * size + e) / 4;
        const bool is_there = is_inside(four_at(which));
        const uint2 at = is_there ? four_at(which) : uint2(0);
        const uint last = last_of(at);
        factor.make(held[which], is_left ? at.x : at.y, is_left ? at.y : at.x, last, elements + e);
        #pragma clang loop unroll(full)
        for (uint i = 0; i < 4; ++i) {
          elements[e + i] = is_there && i <= last ? elements[e + i] : T(0);
        }
      }
      *reinterpret_cast<threadgroup uint4 *>(stage + factor_index(k)) =
          tensor_word<T>::rounded(tensor_word<T>::group(elements));
    }
  }

  // What a thread has copied, to what tensor cores take.
  METAL_FUNC void round(threadgroup T *stage) const {
    uint4 own_groups[groups];
    #pragma clang loop unroll(full)
    for (uint k = 0; k < groups && is_copied && sizeof(T) == 4; ++k) {
      own_groups[k] = *reinterpret_cast<threadgroup uint4 *>(stage + factor_index(k));
    }
    #pragma clang loop unroll(full)
    for (uint k = 0; k < groups && is_copied && sizeof(T) == 4; ++k) {
      *reinterpret_cast<threadgroup uint4 *>(stage + factor_index(k)) =
          tensor_word<T>::rounded(own_groups[k]);
    }
  }
};

// Which tile a threadgroup makes: those that run together share what they read.
METAL_FUNC uint2 tensor_tile(uint2 group, uint2 tiles) {
  const uint index = group.y * tiles.x + group.x, panel = tensor_panel * tiles.x;
  const uint first = index / panel * tensor_panel, height = min(tiles.y - first, tensor_panel);
  return uint2(index % panel / height, first + index % panel % height);
}

template <typename T, uint down, uint across, bool left_down, bool right_down, bool left_copied,
          bool right_copied, typename Left, typename Right, typename Store>
METAL_FUNC void multiply_in_tensors(threadgroup T *tiles, Left left, Right right, Store store,
                                    uint3 size, uint3 group, uint own) {
  constexpr uint rows = down * simdgroup_extent, columns = across * simdgroup_extent;
  constexpr uint threads = down * across * 32, stage = tensor_stage<T, down, across>();
  constexpr uint step = tensor_step<T>(), depth = tensor_depth<T>();
  constexpr uint blocks = tensor_blocks, wide = 2 * blocks;
  const uint2 tile = tensor_tile(
      group.xy, uint2((size.y + columns - 1) / columns, (size.x + rows - 1) / rows));
  const uint row = tile.y * rows, column = tile.x * columns;
  const uint simdgroup = simd_broadcast_first(own / 32), lane = own % 32;
  const uint y = simdgroup / across * simdgroup_extent, x = simdgroup % across * simdgroup_extent;
  tensor_factor<T, true, !left_down, left_copied, rows, threads, Left> lefts{left, row, own,
                                                                            size.xz};
  tensor_factor<T, false, right_down, right_copied, columns, threads, Right> rights{
      right, column, own, size.yz};
  #pragma clang loop unroll(disable)
  for (uint s = 0; s < tensor_stages; ++s) {
    threadgroup T *to = tiles + s * stage;
    lefts.copy(to, s * step);
    rights.copy(to + rows * step, s * step);
    close_copies();
    lefts.fetch(s * step);
    rights.fetch(s * step);
    if (s + 1 < tensor_stages) {  // the last one is put below
      lefts.put(to);
      rights.put(to + rows * step);
    }
  }
  float sums[blocks][wide][4];
  #pragma clang loop unroll(full)
  for (uint k = 0; k < blocks * wide * 4; ++k) {
    sums[k / (4 * wide)][k / 4 % wide][k % 4] = 0.0f;
  }
  wait_for_copies<tensor_stages - 2>();
  for (uint s = 0; s < 2; ++s) {
    lefts.round(tiles + s * stage);
    rights.round(tiles + s * stage + rows * step);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint a[2][blocks][4], b[2][blocks][4];
  #pragma clang loop unroll(full)
  for (uint i = 0; i < blocks; ++i) {
    take_block<T, true, !left_down, rows>(a[0][i], tiles, y + i * 16, 0, lane);
    take_block<T, false, right_down, columns>(b[0][i], tiles + rows * step, x + i * 16, 0, lane);
  }
  threadgroup T *now = tiles, *before = tiles + (tensor_stages - 1) * stage;
  #pragma clang loop unroll(disable)
  for (uint k = 0; k < size.z; k += step) {
    const uint ahead = k + tensor_stages * step;
    threadgroup T *next = now == tiles + (tensor_stages - 1) * stage ? tiles : now + stage;
    #pragma clang loop unroll(full)
    for (uint j = 0; j < step; j += depth) {
      const uint which = j / depth % 2;
      const bool is_last = j + depth == step;
      if (is_last) {
        lefts.put(before);
        rights.put(before + rows * step);
        lefts.fetch(ahead);
        rights.fetch(ahead);
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
        if (sizeof(T) == 4) {
          threadgroup T *third = next == tiles + (tensor_stages - 1) * stage ? tiles : next + stage;
          wait_for_copies<tensor_stages - 3>();
          lefts.round(third);
          rights.round(third + rows * step);
        }
        lefts.copy(now, ahead);
        rights.copy(now + rows * step, ahead);
        close_copies();
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
