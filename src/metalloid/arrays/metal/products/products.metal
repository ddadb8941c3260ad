// Products of matrices, tile by tile. Plain MSL.
//
// A threadgroup makes a tile of the result. It goes along the depth in steps: what a step needs of
// the factors is read once, by all threads, into threadgroup memory, where each element serves a
// whole row or column of the tile.
//
// A kernel says how it reads an element of a factor (`Left`, `Right`, by row and column), and what
// it stores for a sum (`Store`), so that casts of operands and activations of results are fused.
namespace numpy {

// Rows and columns of a tile, and the threads that make it: 16 simdgroups.
constexpr constant uint product_tile = 64;
constexpr constant uint product_threads = 512;

// Elements of the depth that a step takes, and those of both tiles: at most 32 KiB.
template <typename T>
constexpr uint product_step() { return sizeof(T) > 8 ? 16 : 32; }
template <typename T>
constexpr uint product_capacity() { return 2 * product_tile * product_step<T>(); }

METAL_FUNC float times_plus(float a, float b, float sum) { return fma(a, b, sum); }
template <typename T>
METAL_FUNC T times_plus(T a, T b, T sum) { return add(multiply(a, b), sum); }

#if METALLOID_BFLOAT_DOTS
// Pairs of bfloats, which follow each other along the depth.
METAL_FUNC float times_plus(uint a, uint b, float sum) {
  return metalloid::dot_of_bfloats(a, b, sum);
}

METAL_FUNC uint read_pair(device const bfloat *from) {
  typedef uint pair __attribute__((aligned(2)));
  return *(device const pair *)from;
}
#endif

// Read a tile from a row and a column on, with zeros beyond the end. Adjacent threads read
// along rows, or along columns if `down`; columns of the tile are contiguous if `transposed`.
template <uint rows, uint columns, bool down, bool transposed, typename T, typename Read>
METAL_FUNC void read_tile(threadgroup T *tile, Read read, uint row, uint column, uint2 end,
                          uint own) {
  const bool is_full = row + rows <= end.x && column + columns <= end.y;
  for (uint k = own; k < rows * columns; k += product_threads) {
    const uint i = down ? k % rows : k / columns, j = down ? k / rows : k % columns;
    const uint to = transposed ? j * rows + i : i * columns + j;
    if (is_full) {
      tile[to] = T(read(row + i, column + j));
    } else {
      tile[to] = row + i < end.x && column + j < end.y ? T(read(row + i, column + j)) : T(0);
    }
  }
}

// With sums in registers: each thread has 8 rows of one column. `size` is that of the result, and
// the depth.
template <typename T, bool left_down, bool right_down, typename Left, typename Right,
          typename Store>
METAL_FUNC void multiply_in_registers(threadgroup T *tiles, Left left, Right right, Store store,
                                      uint3 size, uint3 group, uint simdgroup, uint lane) {
  constexpr uint tile = product_tile, step = product_step<T>();
  threadgroup T *left_tile = tiles, *right_tile = tiles + tile * step;
  const uint row = group.y * tile, column = group.x * tile, own = simdgroup * 32 + lane;
  // That all lanes have the same rows goes without saying on GPUs. The CPU learns here that 32
  // threads belong together.
  const uint first = simd_broadcast_first(simdgroup) / 2 * 8, x = simdgroup % 2 * 32 + lane;
  T sums[8];
  for (uint i = 0; i < 8; ++i) {
    sums[i] = T(0);
  }
  for (uint k = 0; k < size.z; k += step) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    read_tile<tile, step, left_down, left_down>(left_tile, left, row, k, size.xz, own);
    read_tile<step, tile, right_down, false>(right_tile, right, k, column, size.zy, own);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    T parts[8];  // of a step alone: rounding errors do not pile up along the depth
    for (uint i = 0; i < 8; ++i) {
      parts[i] = T(0);
    }
    for (uint j = 0; j < step; ++j) {
      const T b = right_tile[j * tile + x];
      for (uint i = 0; i < 8; ++i) {
        const T a = left_tile[left_down ? j * tile + first + i : (first + i) * step + j];
        parts[i] = times_plus(a, b, parts[i]);
      }
    }
    for (uint i = 0; i < 8; ++i) {
      sums[i] = add(sums[i], parts[i]);
    }
  }
  for (uint i = 0; i < 8; ++i) {
    if (row + first + i < size.x && column + x < size.y) {
      store(row + first + i, column + x, sums[i]);
    }
  }
}

// With matrices of simdgroups: each simdgroup has 16 rows of 16 columns.
template <typename T, bool left_down, bool right_down, typename Left, typename Right,
          typename Store>
METAL_FUNC void multiply_in_simdgroups(threadgroup T *tiles, Left left, Right right, Store store,
                                       uint3 size, uint3 group, uint simdgroup, uint lane) {
  constexpr uint tile = product_tile, step = product_step<T>();
  threadgroup T *left_tile = tiles, *right_tile = tiles + tile * step;
  const uint row = group.y * tile, column = group.x * tile, own = simdgroup * 32 + lane;
  const uint y = simdgroup / 4 * 16, x = simdgroup % 4 * 16;
  simdgroup_matrix<T, 8, 8> sums[2][2];
  for (uint i = 0; i < 4; ++i) {
    sums[i / 2][i % 2] = make_filled_simdgroup_matrix<T, 8, 8>(T(0));
  }
  for (uint k = 0; k < size.z; k += step) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    read_tile<tile, step, left_down, left_down>(left_tile, left, row, k, size.xz, own);
    read_tile<step, tile, right_down, right_down>(right_tile, right, k, column, size.zy, own);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = 0; j < step; j += 8) {
      simdgroup_matrix<T, 8, 8> a[2], b[2];
      for (uint i = 0; i < 2; ++i) {
        if (left_down) {
          simdgroup_load(a[i], left_tile + j * tile + y + i * 8, tile, ulong2(0), true);
        } else {
          simdgroup_load(a[i], left_tile + (y + i * 8) * step + j, step);
        }
        if (right_down) {
          simdgroup_load(b[i], right_tile + (x + i * 8) * step + j, step, ulong2(0), true);
        } else {
          simdgroup_load(b[i], right_tile + j * tile + x + i * 8, tile);
        }
      }
      for (uint i = 0; i < 4; ++i) {
        simdgroup_multiply_accumulate(sums[i / 2][i % 2], a[i / 2], b[i % 2], sums[i / 2][i % 2]);
      }
    }
  }
  // The sums overwrite the tiles, for any thread to read.
  static_assert(tile * tile <= product_capacity<T>(), "the sums do not fit");
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = 0; i < 4; ++i) {
    simdgroup_store(sums[i / 2][i % 2], tiles + (y + i / 2 * 8) * tile + x + i % 2 * 8, tile);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = own; k < tile * tile; k += product_threads) {
    if (row + k / tile < size.x && column + k % tile < size.y) {
      store(row + k / tile, column + k % tile, tiles[k]);
    }
  }
}

// With sums in registers and no copies of tiles, for CPUs, whose caches do what threadgroup memory
// does on GPUs: a threadgroup makes `panel_rows` rows of 32, 16 or 8 columns. A thread has a
// column, and `count` rows at a time. `own` is its position in the threadgroup: other than its
// index in the simdgroup, it does not fix the number of lanes.
constexpr constant uint panel_rows = 64, panel_columns = 32;
// Elements of the depth that are added before the next rows are begun: those of the right factor
// stay in a cache, from which they are fetched ahead if they are packed. The tile holds the sums
// meanwhile.
constexpr constant uint panel_depth = 256, packed_panel_depth = 512;
// A factor that is packed lies in panels of 32 rows of the left, or 32 columns of the right factor;
// the 32 elements of one index of the depth are contiguous. `at` is the address of the first of them.
template <typename T, typename Element, uint count, bool left_is_packed, bool right_is_packed,
          typename Left, typename Right>
METAL_FUNC void add_panels(thread T *sums, Left left, Right right, device const Element *a,
                           device const Element *b, uint row, uint last, uint column, uint start,
                           uint depth) {
  for (uint k = 0; k < depth; ++k) {
    const Element y = right_is_packed ? b[k * panel_columns] : Element(right(start + k, column));
    for (uint j = 0; j < count; ++j) {
      const Element x =
          left_is_packed ? a[k * panel_columns + j] : Element(left(min(row + j, last), start + k));
      sums[j] = times_plus(x, y, sums[j]);
    }
  }
}

// The next matrices of a stack, which are fetched while one is multiplied: row by row, as many bytes
// for each index of the depth as the left factor has there. Threadgroups of the first columns fetch
// the left factor, those of the last the right one.
struct Ahead {
  device const char *left, *right;

  METAL_FUNC void fetch(uint at) const {
#if METALLOID_PREFETCHES
    if (left) {
      metalloid::prefetch(left + at);
    }
    if (right) {
      metalloid::prefetch(right + at);
    }
#endif
  }
};

// A few rows of one column, over the whole depth.
template <typename T, typename Element, uint count, bool is_full, bool has_next, typename Left,
          typename Right, typename Store>
METAL_FUNC void multiply_rows(Left left, Right right, Store store, Ahead ahead, uint row,
                              uint column, uint3 size) {
  T sums[count];
  for (uint j = 0; j < count; ++j) {
    sums[j] = T(0);
  }
  for (uint k = 0; k < size.z; ++k) {
    if (has_next) {
      ahead.fetch((row * size.z + k * count) * sizeof(Element));
    }
    add_panels<T, Element, count, false, false>(sums, left, right, nullptr, nullptr, row,
                                                is_full ? ~0u : size.x - 1, column, k, 1);
  }
  for (uint j = 0; j < count; ++j) {
    if (is_full || row + j < size.x) {
      store(row + j, column, sums[j]);
    }
  }
}

// `Element` is the type of the factors' elements: that of the sums, or uint for pairs of bfloats.
template <typename T, typename Element, uint columns, uint count, bool left_is_packed,
          bool right_is_packed, typename Left, typename Right, typename Store>
METAL_FUNC void multiply_in_panels(threadgroup T *tile, Left left, Right right, Store store,
                                   uint3 size, uint3 group, uint own) {
  constexpr uint step = right_is_packed ? packed_panel_depth : panel_depth;
  const uint first = group.y * panel_rows, column = group.x * columns + own;
  if (columns < panel_columns) {  // threads that wait for each other form simdgroups of this width
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (column >= size.y) {
    return;
  }
  const uint rows = min(panel_rows, size.x - first), last = size.x - 1;
  // Sums of short depths, which are never in the tile, have a loop of their own: merged with the
  // others they are spilled, which takes as long as a fifth of the product if memory is slow.
  uint done = 0;
  if (!left_is_packed && !right_is_packed && size.z <= step) {
    const Ahead ahead = {group.x == 0 ? left.next() : nullptr,
                         (group.x + 1) * columns >= size.y ? right.next() : nullptr};
    const bool has_next = size.z >= panel_columns && (ahead.left || ahead.right);
    for (; has_next && done + count <= rows; done += count) {
      multiply_rows<T, Element, count, true, true>(left, right, store, ahead, first + done, column,
                                                   size);
    }
    for (; done + count <= rows; done += count) {
      multiply_rows<T, Element, count, true, false>(left, right, store, ahead, first + done, column,
                                                    size);
    }
    if (count == 8 && done < rows && done + count / 2 >= rows) {
      multiply_rows<T, Element, count / 2, false, false>(left, right, store, ahead, first + done,
                                                         column, size);
      done = rows;
    }
  }
  for (uint start = 0; start == 0 || start < size.z; start += step) {
    const uint depth = min(step, size.z - start);
    const uint within_panel = column % panel_columns;
    device const Element *b =
        right_is_packed ? right.at(start, column - within_panel) + within_panel : nullptr;
    for (uint i = done; i < rows; i += count) {
      const uint row = first + i, within = row % panel_columns;
      device const Element *a = left_is_packed ? left.at(row - within, start) + within : nullptr;
      threadgroup T *part = tile + i * columns + own;
      T sums[count];
      for (uint j = 0; j < count; ++j) {
        sums[j] = start == 0 ? T(0) : part[j * columns];
      }
      if (row + count <= size.x) {
        add_panels<T, Element, count, left_is_packed, right_is_packed>(
            sums, left, right, a, b, row, ~0u, column, start, depth);
      } else {  // beyond the last row, it is read again
        add_panels<T, Element, count, left_is_packed, right_is_packed>(
            sums, left, right, a, b, row, last, column, start, depth);
      }
      if (start + depth < size.z) {
        for (uint j = 0; j < count; ++j) {
          part[j * columns] = sums[j];
        }
      } else {
        for (uint j = 0; j < count; ++j) {
          if (row + j < size.x) {
            store(row + j, column, sums[j]);
          }
        }
      }
    }
  }
}

// A row times a matrix that is contiguous along its columns, for CPUs: a thread has `count` columns
// that are 32 apart, so that a threadgroup reads several cache lines of each row of the matrix.
template <typename T, uint count, typename Left, typename Right, typename Store>
METAL_FUNC void multiply_strip(Left left, Right right, Store store, uint depth, uint row,
                               uint column) {
  T sums[count];
  for (uint j = 0; j < count; ++j) {
    sums[j] = T(0);
  }
  for (uint k = 0; k < depth; ++k) {
    const T x = T(left(row, k));
    for (uint j = 0; j < count; ++j) {
      sums[j] = times_plus(x, T(right(k, column + j * panel_columns)), sums[j]);
    }
  }
  for (uint j = 0; j < count; ++j) {
    store(row, column + j * panel_columns, sums[j]);
  }
}

template <typename T, uint count, typename Left, typename Right, typename Store>
METAL_FUNC void multiply_in_strips(Left left, Right right, Store store, uint3 size, uint3 group,
                                   uint own) {
  uint first = group.x * panel_columns * count;
  if (first + panel_columns * count <= size.y) {
    multiply_strip<T, count>(left, right, store, size.z, group.y, first + own);
    return;
  }
  if (first + panel_columns * count / 2 <= size.y) {
    multiply_strip<T, count / 2>(left, right, store, size.z, group.y, first + own);
    first += panel_columns * count / 2;
  }
  for (uint column = first + own; column < size.y; column += panel_columns) {
    multiply_strip<T, 1>(left, right, store, size.z, group.y, column);
  }
}

// Dot products, for factors that are contiguous along the depth: the lanes of a simdgroup have
// elements of it, `rows` rows of the left factor meet `columns` columns of the right one, and a tree
// adds up the lanes of all these sums together. A threadgroup makes `dot_rows` rows; it has as many
// threads as an AVX-512 register has elements, so that each sum is one register.
constexpr constant uint dot_rows = 64, dot_columns = 32;

template <typename T, uint rows, uint columns, bool is_full, typename Left, typename Right>
METAL_FUNC void add_products(thread T *sums, Left left, Right right, uint2 end, uint row,
                             uint column, uint k) {
  T a[rows], b[columns];
  for (uint i = 0; i < rows; ++i) {  // beyond the last row or column, it is read again
    a[i] = T(left(is_full ? row + i : min(row + i, end.x - 1), k));
  }
  for (uint j = 0; j < columns; ++j) {
    b[j] = T(right(k, is_full ? column + j : min(column + j, end.y - 1)));
  }
  for (uint i = 0; i < rows; ++i) {
    for (uint j = 0; j < columns; ++j) {
      sums[i * columns + j] = times_plus(a[i], b[j], sums[i * columns + j]);
    }
  }
}

template <typename T, uint rows, uint columns, uint lanes, bool is_full, typename Left,
          typename Right>
METAL_FUNC void add_products_of_depth(thread T *sums, Left left, Right right, uint3 size, uint row,
                                      uint column, uint lane) {
  const uint full = size.z / lanes * lanes;
  for (uint k = 0; k < full; k += lanes) {
    add_products<T, rows, columns, is_full>(sums, left, right, size.xy, row, column, k + lane);
  }
  if (full + lane < size.z) {
    add_products<T, rows, columns, is_full>(sums, left, right, size.xy, row, column, full + lane);
  }
}

// The sums over all lanes: that of index i in lane i, and in every `count`-th lane from there on.
template <typename T, uint count, uint lanes>
METAL_FUNC T add_lanes(thread T *sums, uint lane) {
  constexpr ushort within = min(lanes, uint(64 / sizeof(T)));  // lanes of a register
  #pragma clang loop unroll(full)
  for (ushort bit = lanes / 2; bit >= within; bit /= 2) {  // shuffles nothing
    #pragma clang loop unroll(full)
    for (ushort i = 0; i < count; ++i) {
      sums[i] = add(sums[i], simd_shuffle_xor(sums[i], bit));
    }
  }
  #pragma clang loop unroll(full)
  for (ushort bit = count / 2; bit > 0; bit /= 2) {
    const bool is_upper = lane & bit;
    #pragma clang loop unroll(full)
    for (ushort i = 0; i < bit; ++i) {
      const T retained = is_upper ? sums[i + bit] : sums[i];
      sums[i] = add(retained, simd_shuffle_xor(is_upper ? sums[i] : sums[i + bit], bit));
    }
  }
  #pragma clang loop unroll(full)
  for (ushort bit = count; bit < within; bit *= 2) {
    sums[0] = add(sums[0], simd_shuffle_xor(sums[0], bit));
  }
  return sums[0];
}

template <typename T, uint rows, uint columns, uint lanes, typename Left, typename Right,
          typename Store>
METAL_FUNC void multiply_in_dots(Left left, Right right, Store store, uint3 size, uint3 group,
                                 uint lane) {
  constexpr uint count = rows * columns, width = columns == 1 ? 1 : dot_columns;
  constexpr uint each = count < lanes ? count : lanes;  // sums that are added up together
  const uint first = group.y * dot_rows, start = group.x * width;
  const uint2 end = min(uint2(first + dot_rows, start + width), size.xy);
  for (uint column = start; column < end.y; column += columns) {
    for (uint row = first; row < end.x; row += rows) {
      T sums[count];
      for (uint i = 0; i < count; ++i) {
        sums[i] = T(0);
      }
      if (row + rows <= size.x && column + columns <= size.y) {
        add_products_of_depth<T, rows, columns, lanes, true>(sums, left, right, size, row, column,
                                                             lane);
      } else {
        add_products_of_depth<T, rows, columns, lanes, false>(sums, left, right, size, row, column,
                                                              lane);
      }
      #pragma clang loop unroll(full)
      for (uint i = 0; i < count; i += each) {
        sums[i] = add_lanes<T, each, lanes>(sums + i, lane);
      }
      if (columns == 1) {  // contiguous along the column
        if (lane < rows && row + lane < end.x) {
          store(row + lane, column, sums[0]);
        }
        continue;
      }
      #pragma clang loop unroll(full)
      for (uint i = 0; i < rows; ++i) {  // a row is contiguous, and no scatter
        const uint from = i * columns / each * each, other = i * columns % each;
        const T part = other == 0 ? sums[from] : simd_shuffle_xor(sums[from], other);
        if (lane < columns && column + lane < end.y && row + i < end.x) {
          store(row + i, column + lane, part);
        }
      }
    }
  }
}

// Pack a matrix of `size.x` rows, or columns, and the depth `size.y`, contiguous along one of them,
// with a stride along the other. A threadgroup of 32 threads copies `packed_depth` elements of the
// depth of a panel.
constexpr constant uint packed_depth = 128;

// A tile of 32 x 32 elements is transposed in two steps, which rotate the ten bits of their indices
// by three and by two: adjacent threads read adjacent vectors of eight or four elements.
constexpr constant uint packed_tile = panel_columns * panel_columns;

template <typename T, uint count, typename To>
METAL_FUNC void rotate_index(threadgroup const T *from, To to, uint own) {
  for (uint t = 0; t < packed_tile / count; t += panel_columns) {
    T elements[count];  // all loads before the stores: each is a single wide access
    #pragma clang loop unroll(full)
    for (uint j = 0; j < count; ++j) {
      elements[j] = (from + count * t)[count * own + j];
    }
    #pragma clang loop unroll(full)
    for (uint j = 0; j < count; ++j) {
      to[j * (packed_tile / count) + t + own] = elements[j];
    }
  }
}

// An element of a factor in the type of the sums; and a pair of bfloats, with 0 beyond the end.
template <typename T, typename Element>
METAL_FUNC T packed_element(device const Element *from, uint k, ulong stride, uint depth) {
  return T(from[k * stride]);
}
template <>
METAL_FUNC uint packed_element(device const bfloat *from, uint k, ulong stride, uint depth) {
  device const ushort *bits = (device const ushort *)from;
  const uint low = bits[2 * k * stride];
  return 2 * k + 1 < depth ? low | uint(bits[(2 * k + 1) * stride]) << 16 : low;
}

template <typename T, bool is_along_depth, bool has_pairs, typename Element>
METAL_FUNC void pack_panel(threadgroup T *tiles, device const Element *from, device T *to,
                           uint2 size, ulong stride, uint3 group, uint own) {
  const uint depth = has_pairs ? (size.y + 1) / 2 : size.y;
  const uint start = group.x * packed_depth, end = min(start + packed_depth, depth);
  const uint first = group.y * panel_columns, count = min(panel_columns, size.x - first);
  from += first * (is_along_depth ? stride : 1);
  to += ulong(first) * depth;
  if (is_along_depth) {
    threadgroup T *rows = tiles, *halfway = tiles + packed_tile;
    for (uint k = start; k < end; k += panel_columns) {
      const bool is_within = k + own < end;
      for (uint i = 0; i < count; ++i) {
        rows[i * panel_columns + own] = is_within ? packed_element<T>(from + i * stride, k + own, 1, size.y) : T(0);
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
      rotate_index<T, 8>(rows, halfway, own);
      simdgroup_barrier(mem_flags::mem_threadgroup);
      if (k + panel_columns <= end) {
        rotate_index<T, 4>(halfway, to + k * panel_columns, own);
      } else {
        rotate_index<T, 4>(halfway, rows, own);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = k; i < end; ++i) {
          to[i * panel_columns + own] = rows[(i - k) * panel_columns + own];
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
  } else if (own < count) {
    for (uint k = start; k < end; ++k) {
      to[k * panel_columns + own] = packed_element<T>(from + own, k, stride, size.y);
    }
  }
}

}  // namespace numpy
