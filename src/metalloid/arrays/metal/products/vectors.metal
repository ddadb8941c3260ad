// Products on CPUs: of a row and a matrix in strips, and dot products. Plain MSL.
namespace numpy {

// A row times a matrix that is contiguous along its columns, for CPUs: a thread has `count` columns
// that are `lanes` apart, so that a threadgroup reads several cache lines of each row of the matrix.
template <typename T, uint count, uint lanes, typename Left, typename Right, typename Store>
METAL_FUNC void multiply_strip(Left left, Right right, Store store, uint depth, uint row,
                               uint column) {
  T sums[count];
  for (uint j = 0; j < count; ++j) {
    sums[j] = T(0);
  }
  for (uint k = 0; k < depth; ++k) {
    const T x = T(left(row, k));
    for (uint j = 0; j < count; ++j) {
      sums[j] = times_plus(x, T(right(k, column + j * lanes)), sums[j]);
    }
  }
  for (uint j = 0; j < count; ++j) {
    store(row, column + j * lanes, sums[j]);
  }
}

template <typename T, uint count, uint lanes, typename Left, typename Right, typename Store>
METAL_FUNC void multiply_in_strips(Left left, Right right, Store store, uint3 size, uint3 group,
                                   uint own) {
  uint first = group.x * lanes * count;
  if (first + lanes * count <= size.y) {
    multiply_strip<T, count, lanes>(left, right, store, size.z, group.y, first + own);
    return;
  }
  if (first + lanes * count / 2 <= size.y) {
    multiply_strip<T, count / 2, lanes>(left, right, store, size.z, group.y, first + own);
    first += lanes * count / 2;
  }
  for (uint column = first + own; column < size.y; column += lanes) {
    multiply_strip<T, 1, lanes>(left, right, store, size.z, group.y, column);
  }
}

// Dot products, for factors that are contiguous along the depth: the lanes of a simdgroup have
// elements of it, `rows` rows of the left factor meet `columns` columns of the right one, and a
// tree adds up the lanes of all these sums together. A threadgroup makes `dot_rows` rows; it has as many
// threads as an AVX-512 register has elements, so that each sum is one register.
constexpr constant uint dot_rows = 64, dot_columns = 32;
// A row by a matrix of so many bytes, which come from memory, takes one column after the other.
constexpr constant ulong in_order_bytes = 1 << 22;

template <typename T, typename Element, uint rows, uint columns, bool is_full, typename Left,
          typename Right>
METAL_FUNC void add_products(thread T *sums, Left left, Right right, uint2 end, uint row,
                             uint column, uint k) {
  Element a[rows], b[columns];
  for (uint i = 0; i < rows; ++i) {  // beyond the last row or column, it is read again
    a[i] = Element(left(is_full ? row + i : min(row + i, end.x - 1), k));
  }
  for (uint j = 0; j < columns; ++j) {
    b[j] = Element(right(k, is_full ? column + j : min(column + j, end.y - 1)));
  }
  for (uint i = 0; i < rows; ++i) {
    for (uint j = 0; j < columns; ++j) {
      sums[i * columns + j] = times_plus(a[i], b[j], sums[i * columns + j]);
    }
  }
}

template <typename T, typename Element, uint rows, uint columns, uint lanes, bool is_full,
          typename Left, typename Right>
METAL_FUNC void add_products_of_depth(thread T *sums, Left left, Right right, uint3 size, uint row,
                                      uint column, uint lane) {
  const uint full = size.z / lanes * lanes;
  for (uint k = 0; k < full; k += lanes) {
    add_products<T, Element, rows, columns, is_full>(sums, left, right, size.xy, row, column,
                                                     k + lane);
  }
  if (full + lane < size.z) {
    add_products<T, Element, rows, columns, is_full>(sums, left, right, size.xy, row, column,
                                                     full + lane);
  }
}

// A lane's sum of a row by one column: memory is read faster in order than in several streams. A page
// is fetched ahead, as processors guess within pages only.
template <typename T, typename Element, uint lanes, typename Left, typename Right>
METAL_FUNC T column_product(Left left, Right right, uint depth, uint row, uint column, uint lane) {
  constexpr uint count = 4;  // sums that do not wait for each other
  T sums[count];
  for (uint i = 0; i < count; ++i) {
    sums[i] = T(0);
  }
  const uint full = depth / (count * lanes) * (count * lanes);
  for (uint k = lane; k < full; k += count * lanes) {
    for (uint i = 0; i < count; ++i) {
      const uint at = k + i * lanes;
#if METALLOID_PREFETCHES
      device const char *from = right.address(at - lane, column);
      if (from) {
        metalloid::prefetch(from + 4096);
      }
#endif
      sums[i] = times_plus(Element(left(row, at)), Element(right(at, column)), sums[i]);
    }
  }
  for (uint k = full + lane; k < depth; k += lanes) {
    sums[0] = times_plus(Element(left(row, k)), Element(right(k, column)), sums[0]);
  }
  return add(add(sums[0], sums[1]), add(sums[2], sums[3]));
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

// The sums of a tile: `each` of them, added up together, in one variable; see `add_lanes`.
template <typename T, typename Element, uint rows, uint columns, uint lanes, uint each,
          typename Left, typename Right>
METAL_FUNC void multiply_tile(thread T *sums, Left left, Right right, uint3 size, uint row,
                              uint column, uint lane) {
  constexpr uint count = rows * columns;
  for (uint i = 0; i < count; ++i) {
    sums[i] = T(0);
  }
  const bool is_large = ulong(size.y) * size.z * sizeof(Element) >= in_order_bytes;
  if (rows == 1 && columns > 1 && is_large && column + columns <= size.y) {
    for (uint j = 0; j < columns; ++j) {
      sums[j] = column_product<T, Element, lanes>(left, right, size.z, row, column + j, lane);
    }
  } else if (row + rows <= size.x && column + columns <= size.y) {
    add_products_of_depth<T, Element, rows, columns, lanes, true>(sums, left, right, size, row,
                                                                  column, lane);
  } else {
    add_products_of_depth<T, Element, rows, columns, lanes, false>(sums, left, right, size, row,
                                                                   column, lane);
  }
  #pragma clang loop unroll(full)
  for (uint i = 0; i < count; i += each) {
    sums[i] = add_lanes<T, each, lanes>(sums + i, lane);
  }
}

// From the sums of adjacent columns, of index i in lane i and in every `count`-th lane from there on, to
// those of rows: they swap the lanes' bits of the row with those of the index in the array.
template <typename T, uint count, uint columns, uint lanes>
METAL_FUNC void rows_of_steps(thread T *sums, uint lane) {
  #pragma clang loop unroll(full)
  for (uint bit = lanes / 2; bit >= count; bit /= 2) {
    #pragma clang loop unroll(full)
    for (uint i = 0; i < bit / columns; ++i) {
      sums[i] = lane & bit ? sums[i + bit / columns] : sums[i];
    }
  }
  #pragma clang loop unroll(full)
  for (uint bit = count / 2; bit >= columns; bit /= 2) {
    const bool is_upper = lane & bit;
    #pragma clang loop unroll(full)
    for (uint i = 0; i < count / columns; ++i) {
      const uint other = i + bit / columns;
      if ((i & (bit / columns)) == 0) {
        const T lower = simd_shuffle_xor(sums[i], ushort(bit));
        const T upper = simd_shuffle_xor(sums[other], ushort(bit));
        sums[i] = is_upper ? upper : sums[i];
        sums[other] = is_upper ? sums[other] : lower;
      }
    }
  }
}

// Sums of one AVX register are collected for as many columns as it has lanes, so that whole registers
// are stored: stores of two lanes take longer than the sums. `end` is that of the threadgroup's tile.
template <typename T, typename Element, uint rows, uint columns, uint lanes, typename Left,
          typename Right, typename Store>
METAL_FUNC void multiply_and_collect(Left left, Right right, Store store, uint3 size, uint2 first,
                                     uint2 end, uint lane) {
  constexpr uint count = rows * columns, steps = lanes / columns;
  for (uint start = first.y; start < end.y; start += lanes) {
    for (uint row = first.x; row < end.x; row += rows) {
      T collected[steps];
      #pragma clang loop unroll(full)
      for (uint i = 0; i < steps; ++i) {
        collected[i] = T(0);
      }
      #pragma clang loop unroll(full)
      for (uint i = 0; i < steps; ++i) {
        if (start + i * columns < end.y) {
          T sums[count];
          multiply_tile<T, Element, rows, columns, lanes, count>(sums, left, right, size, row,
                                                                 start + i * columns, lane);
          collected[i] = sums[0];
        }
      }
      rows_of_steps<T, count, columns, lanes>(collected, lane);
      #pragma clang loop unroll(full)
      for (uint i = 0; i < rows; ++i) {
        if (start + lane < end.y && row + i < end.x) {
          store(row + i, start + lane, collected[i]);
        }
      }
    }
  }
}

// The same for a single column, whose sums are in every `rows`-th lane.
template <typename T, typename Element, uint rows, uint lanes, typename Left, typename Right,
          typename Store>
METAL_FUNC void multiply_and_collect_column(Left left, Right right, Store store, uint3 size,
                                            uint first, uint end, uint column, uint lane) {
  for (uint start = first; start < end; start += lanes) {
    T collected = T(0);
    for (uint i = 0; i < lanes && start + i < end; i += rows) {
      T sums[rows];
      multiply_tile<T, Element, rows, 1, lanes, rows>(sums, left, right, size, start + i, column,
                                                      lane);
      collected = lane / rows == i / rows ? sums[0] : collected;
    }
    if (start + lane < end) {
      store(start + lane, column, collected);
    }
  }
}

// `Element` is the type of the factors' elements: that of the sums, or uint for pairs of bfloats.
template <typename T, typename Element, uint rows, uint columns, uint lanes, typename Left,
          typename Right, typename Store>
METAL_FUNC void multiply_in_dots(Left left, Right right, Store store, uint3 size, uint3 group,
                                 uint lane) {
  constexpr uint count = rows * columns, width = columns == 1 ? 1 : dot_columns;
  constexpr uint each = count < lanes ? count : lanes;  // sums that are added up together
  const uint first = group.y * dot_rows, start = group.x * width;
  const uint2 end = min(uint2(first + dot_rows, start + width), size.xy);
  if (columns > 1 && lanes == 8 && count * sizeof(T) == 32) {
    multiply_and_collect<T, Element, rows, columns, lanes>(left, right, store, size,
                                                           uint2(first, start), end, lane);
    return;
  }
  if (columns == 1 && lanes == 16 && count * sizeof(T) == 16) {
    multiply_and_collect_column<T, Element, rows, lanes>(left, right, store, size, first, end.x,
                                                         start, lane);
    return;
  }
  for (uint column = start; column < end.y; column += columns) {
    for (uint row = first; row < end.x; row += rows) {
      T sums[count];
      multiply_tile<T, Element, rows, columns, lanes, each>(sums, left, right, size, row, column,
                                                            lane);
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

}  // namespace numpy
