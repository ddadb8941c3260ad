// Products of matrices, tile by tile. Plain MSL.
//
// A threadgroup makes a tile of the result. It goes along the depth in steps: what a step needs of
// the factors is read once, by all threads, into threadgroup memory, where each element serves a
// whole row or column of the tile.
namespace numpy {

// Rows and columns of a tile, and the threads that make it: 16 simdgroups.
constexpr constant uint product_tile = 64;
constexpr constant uint product_threads = 512;

// Elements of the depth that a step takes, and those of both tiles: at most 32 KiB.
template <typename T>
constexpr uint product_step() { return sizeof(T) > 8 ? 16 : 32; }
template <typename T>
constexpr uint product_capacity() { return 2 * product_tile * product_step<T>(); }

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

}  // namespace numpy
