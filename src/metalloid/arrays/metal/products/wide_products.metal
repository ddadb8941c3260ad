// Products of matrices on SIMT devices: 256 threads compute a tile, each in a square
// of sums. While they multiply a step of the depth, the next one comes from memory.
namespace numpy {

constexpr constant uint square_threads = 256;
// Elements of a factor that a step takes: four for each thread.
constexpr constant uint step_elements = 4 * square_threads;

// Rows and columns of a tile, elements of the depth in a step, and those of a line of it in
// threadgroup memory. The padding avoids bank conflicts between
// writers down its columns.
template <uint each>
constexpr uint square_tile() { return 16 * each; }
template <uint each>
constexpr uint square_step() { return step_elements / square_tile<each>(); }
template <uint each>
constexpr uint square_line() { return square_tile<each>() + 4; }
// For both factors, twice.
template <uint each>
constexpr uint square_capacity() { return 4 * square_step<each>() * square_line<each>(); }

// The four elements of a factor that a thread loads: along the depth, or along the tile.
template <typename T, uint each, bool is_left, bool along_depth, typename Factor>
METAL_FUNC void load_four(thread T *to, Factor factor, uint first, uint depth, uint2 end, uint own) {
  constexpr uint tile = square_tile<each>(), step = square_step<each>();
  const uint line = first + (along_depth ? own / (step / 4) : own % (tile / 4) * 4);
  const uint column = depth + (along_depth ? own % (step / 4) * 4 : own / (tile / 4));
  if (first + tile <= end.x && depth + step <= end.y) {
    if (is_left) {
      factor.four(line, column, to);
    } else {
      factor.four(column, line, to);
    }
    return;
  }
  #pragma clang loop unroll(full)
  for (uint e = 0; e < 4; ++e) {
    const uint i = along_depth ? line : line + e, k = along_depth ? column + e : column;
    to[e] = T(0);
    if (i < end.x && k < end.y) {
      to[e] = is_left ? T(factor(i, k)) : T(factor(k, i));
    }
  }
}

template <typename T, uint each, bool along_depth>
METAL_FUNC void put(threadgroup T *tile, const thread T *four, uint own) {
  constexpr uint step = square_step<each>(), line = square_line<each>();
  constexpr uint width = square_tile<each>() / 4;
  if (along_depth) {
    threadgroup T *to = tile + own % (step / 4) * 4 * line + own / (step / 4);
    to[0] = four[0], to[line] = four[1], to[2 * line] = four[2], to[3 * line] = four[3];
  } else {
    threadgroup T *to = tile + own / width * line + own % width * 4;
    *reinterpret_cast<threadgroup vec<T, 4> *>(to) = vec<T, 4>(four[0], four[1], four[2], four[3]);
  }
}

// A thread's rows, or columns: fours, 64 apart.
template <typename T, uint each>
METAL_FUNC void take(thread T *to, threadgroup const T *line) {
  #pragma clang loop unroll(full)
  for (uint i = 0; i < each; i += 4) {
    const vec<T, 4> four = *reinterpret_cast<threadgroup const vec<T, 4> *>(line + i / 4 * 64);
    to[i] = four[0], to[i + 1] = four[1], to[i + 2] = four[2], to[i + 3] = four[3];
  }
}

template <typename T, uint each, bool left_down, bool right_down, typename Left, typename Right,
          typename Store>
METAL_FUNC void multiply_in_squares(threadgroup T *tiles, Left left, Right right, Store store,
                                    uint3 size, uint3 group, uint own) {
  constexpr uint tile = square_tile<each>(), step = square_step<each>();
  constexpr uint line = square_line<each>(), half_capacity = square_capacity<each>() / 2;
  const uint row = group.y * tile, column = group.x * tile;
  const uint y = own / 16 * 4, x = own % 16 * 4;
  T sums[each][each];
  #pragma clang loop unroll(full)
  for (uint i = 0; i < each; ++i) {
    #pragma clang loop unroll(full)
    for (uint j = 0; j < each; ++j) {
      sums[i][j] = T(0);
    }
  }
  T from_left[4], from_right[4];
  threadgroup T *now = tiles, *next = tiles + half_capacity;
  load_four<T, each, true, !left_down>(from_left, left, row, 0, size.xz, own);
  load_four<T, each, false, right_down>(from_right, right, column, 0, size.yz, own);
  put<T, each, !left_down>(now, from_left, own);
  put<T, each, right_down>(now + step * line, from_right, own);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < size.z; k += step) {
    const bool is_last = k + step >= size.z;
    if (!is_last) {
      load_four<T, each, true, !left_down>(from_left, left, row, k + step, size.xz, own);
      load_four<T, each, false, right_down>(from_right, right, column, k + step, size.yz, own);
    }
    #pragma clang loop unroll(full)
    for (uint j = 0; j < step; ++j) {
      T a[each], b[each];
      take<T, each>(a, now + j * line + y);
      take<T, each>(b, now + (step + j) * line + x);
      #pragma clang loop unroll(full)
      for (uint i = 0; i < each; ++i) {
        #pragma clang loop unroll(full)
        for (uint m = 0; m < each; ++m) {
          sums[i][m] = times_plus(a[i], b[m], sums[i][m]);
        }
      }
    }
    if (!is_last) {
      put<T, each, !left_down>(next, from_left, own);
      put<T, each, right_down>(next + step * line, from_right, own);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup T *other = now;
    now = next;
    next = other;
  }
  #pragma clang loop unroll(full)
  for (uint i = 0; i < each; ++i) {
    #pragma clang loop unroll(full)
    for (uint j = 0; j < each; ++j) {
      const uint to_row = row + y + i / 4 * 64 + i % 4, to = column + x + j / 4 * 64 + j % 4;
      if (to_row < size.x && to < size.y) {
        store(to_row, to, sums[i][j]);
      }
    }
  }
}

}  // namespace numpy
