// Products of matrices on CPUs, for any layout of the factors. Plain MSL.
namespace numpy {

// With sums in registers and no copies of tiles, for CPUs, whose caches do what threadgroup memory
// does on GPUs: a threadgroup makes `height` rows of 32, 16 or 8 columns. A thread has a
// column, and `count` rows at a time. `own` is its position in the threadgroup: other than its
// index in the simdgroup, it does not fix the number of lanes.
// Elements of the depth that are added before the next rows are begun: those of the right factor
// stay in a cache, from which they are fetched ahead if they are packed. The tile holds the sums
// meanwhile.
constexpr constant uint panel_depth = 256, packed_panel_depth = 1024;
// Sums of a threadgroup's tile.
template <uint height, uint columns>
constexpr uint panel_tile() {
  return height * columns;
}

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

// The next matrices of a stack, or the next rows of a matrix, which are fetched while others are
// multiplied: row by row, as many bytes for each index of the depth as the left factor has there.
// Threadgroups of the first columns fetch the left factor, those of the last the right one.
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
template <typename T, typename Element, uint columns, uint count, uint height, bool left_is_packed,
          bool right_is_packed, typename Left, typename Right, typename Store>
METAL_FUNC void multiply_in_panels(threadgroup T *tile, Left left, Right right, Store store,
                                   uint3 size, uint3 group, uint own) {
  constexpr uint step = right_is_packed ? packed_panel_depth : panel_depth;
  const uint first = group.y * height, column = group.x * columns + own;
  if (columns < panel_columns) {  // threads that wait for each other form simdgroups of this width
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (column >= size.y) {
    return;
  }
  const uint rows = min(height, size.x - first), last = size.x - 1;
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
    if (count > 4 && done < rows && done + count / 2 >= rows) {
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

}  // namespace numpy
