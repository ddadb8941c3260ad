// Sorts of rows by comparing networks (K. Batcher, "Sorting networks and their applications", AFIPS
// 1968): a simdgroup sorts blocks of 256 items in registers and merges them 32 at a time (H. Inoue
// et al., "AA-Sort", PACT 2007). A chunk of a merge is found by bisection (O. Green et al., "GPU
// Merge Path", ICS 2012).
namespace numpy {

// The key of an element, and its index if required, in words of decreasing significance.
template <uint words>
struct Item {
  uint word[words];

  METAL_FUNC bool is_before(Item other) const {
    bool result = word[words - 1] < other.word[words - 1];
    #pragma clang loop unroll(full)
    for (uint k = words - 1; k-- > 0;) {
      result = (word[k] < other.word[k]) | ((word[k] == other.word[k]) & result);
    }
    return result;
  }
};

// An item after all others.
template <uint words>
METAL_FUNC Item<words> last_item() {
  Item<words> item;
  #pragma clang loop unroll(full)
  for (uint k = 0; k < words; ++k) {
    item.word[k] = ~0u;
  }
  return item;
}

template <uint words>
METAL_FUNC Item<words> select_item(Item<words> a, Item<words> b, bool is_second) {
  #pragma clang loop unroll(full)
  for (uint k = 0; k < words; ++k) {
    a.word[k] = is_second ? b.word[k] : a.word[k];
  }
  return a;
}

template <uint words>
METAL_FUNC void order_pair(thread Item<words> &a, thread Item<words> &b) {
  if constexpr (words == 1) {
    const uint low = min(a.word[0], b.word[0]);
    b.word[0] = max(a.word[0], b.word[0]);
    a.word[0] = low;
  } else {
    const bool swaps = b.is_before(a);
    const Item<words> low = select_item(a, b, swaps);
    b = select_item(b, a, swaps);
    a = low;
  }
}

template <uint words>
METAL_FUNC Item<words> shuffle_item(Item<words> item, ushort mask) {
  #pragma clang loop unroll(full)
  for (uint k = 0; k < words; ++k) {
    item.word[k] = simd_shuffle_xor(item.word[k], mask);
  }
  return item;
}

// The smaller or the larger of the calling lane's item and that of another one, which calls it too.
template <uint words>
METAL_FUNC Item<words> order_lanes(Item<words> own, Item<words> other, bool is_larger) {
  if constexpr (words == 1) {
    own.word[0] = is_larger ? max(own.word[0], other.word[0]) : min(own.word[0], other.word[0]);
    return own;
  } else {
    return select_item(own, other, other.is_before(own) != is_larger);
  }
}

// Sorts the items of all lanes, which rise and then fall.
template <uint words>
METAL_FUNC Item<words> sort_bitonic_lanes(Item<words> item, ushort lane) {
  #pragma clang loop unroll(full)
  for (ushort mask = 16; mask > 0; mask /= 2) {
    item = order_lanes(item, shuffle_item(item, mask), (lane & mask) != 0);
  }
  return item;
}

// Sorts the items of a thread, which rise and then fall.
template <uint words, uint each>
METAL_FUNC void sort_bitonic_rows(thread Item<words> (&rows)[each]) {
  #pragma clang loop unroll(full)
  for (uint half = each / 2; half > 0; half /= 2) {
    #pragma clang loop unroll(full)
    for (uint k = 0; k < each / 2; ++k) {
      const uint first = k / half * 2 * half + k % half;
      order_pair(rows[first], rows[first + half]);
    }
  }
}

template <uint words, uint each>
METAL_FUNC void sort_thread(thread Item<words> (&rows)[each]) {
  constexpr uchar network[19][2] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {1, 2}, {4, 5}, {6, 7},
                                    {4, 6}, {5, 7}, {5, 6}, {0, 4}, {1, 5}, {2, 6}, {3, 7},
                                    {2, 4}, {3, 5}, {1, 2}, {3, 4}, {5, 6}};
  constexpr uint pairs = each == 8 ? 19 : each == 4 ? 5 : 1;
  #pragma clang loop unroll(full)
  for (uint k = 0; k < pairs; ++k) {
    order_pair(rows[network[k][0]], rows[network[k][1]]);
  }
}

// Sorts the items of a simdgroup: a lane has those from each * lane on; two, four or eight.
template <uint words, uint each>
METAL_FUNC void sort_block(thread Item<words> (&rows)[each], ushort lane) {
  sort_thread(rows);
  #pragma clang loop unroll(full)
  for (ushort lanes = 2; lanes <= 32; lanes *= 2) {
    const bool is_larger = (lane & (lanes / 2)) != 0;
    Item<words> others[each];
    #pragma clang loop unroll(full)
    for (uint k = 0; k < each; ++k) {
      others[k] = shuffle_item(rows[each - 1 - k], lanes - 1);
    }
    #pragma clang loop unroll(full)
    for (uint k = 0; k < each; ++k) {
      rows[k] = order_lanes(rows[k], others[k], is_larger);
    }
    #pragma clang loop unroll(full)
    for (ushort mask = lanes / 4; mask > 0; mask /= 2) {
      #pragma clang loop unroll(full)
      for (uint k = 0; k < each; ++k) {
        rows[k] = order_lanes(rows[k], shuffle_item(rows[k], mask), (lane & mask) != 0);
      }
    }
    sort_bitonic_rows(rows);
  }
}

// -- where items come from and go to

// With indices and one word, keys have 16 bits.
template <uint words, bool has_index, typename Bits>
METAL_FUNC Item<words> item_of(Bits key, uint index) {
  Item<words> item;
  constexpr uint last = has_index && words > 1 ? words - 2 : words - 1;
  if constexpr (last > 0) {
    item.word[0] = uint(ulong(key) >> 32);
  }
  item.word[last] = uint(key);
  if constexpr (has_index) {
    item.word[words - 1] = words == 1 ? uint(key) << 16 | index : index;
  }
  return item;
}

// Elements of a row.
template <typename Bits, uint words, bool has_index>
struct Elements {
  device const Bits *values;
  Order<Bits> order;
  uint index, step;  // index of the first element in its row

  METAL_FUNC Item<words> at(uint k) const {
    return item_of<words, has_index>(order.key(values[ulong(k) * step]), index + k);
  }
};

template <typename Bits, uint words>
struct SortedElements {
  device Bits *values;
  Order<Bits> order;
  uint step;

  METAL_FUNC void put(uint k, Item<words> item) const {
    Bits key = Bits(item.word[words - 1]);
    if constexpr (words == 2) {
      key |= Bits(ulong(item.word[0]) << 32);
    }
    values[ulong(k) * step] = order.bits(key);
  }
};

// The indices of the first `count` items.
template <uint words>
struct SortedIndices {
  device long *indices;
  uint count, step;

  METAL_FUNC void put(uint k, Item<words> item) const {
    if (k < count) {
      indices[ulong(k) * step] = words == 1 ? item.word[0] & 0xFFFF : item.word[words - 1];
    }
  }
};

// Items in temporary memory, one plane per word.
template <typename Pointer, uint words>
struct Planes {
  Pointer memory;
  ulong size;

  METAL_FUNC Item<words> at(uint k) const {
    Item<words> item;
    #pragma clang loop unroll(full)
    for (uint w = 0; w < words; ++w) {
      item.word[w] = memory[w * size + k];
    }
    return item;
  }
  METAL_FUNC void put(uint k, Item<words> item) const {
    #pragma clang loop unroll(full)
    for (uint w = 0; w < words; ++w) {
      memory[w * size + k] = item.word[w];
    }
  }
};

template <uint words>
using SharedItems = Planes<threadgroup uint *, words>;

// -- a simdgroup for each chunk

template <uint words, uint each, typename From>
METAL_FUNC void read_block(thread Item<words> (&rows)[each], From from, uint first, uint count,
                           ushort lane) {
  #pragma clang loop unroll(full)
  for (uint k = 0; k < each; ++k) {
    const uint i = first + 32 * k + lane;
    rows[k] = last_item<words>();
    if (i < count) {
      rows[k] = from.at(i);
    }
  }
}

// Sorts each 32 * each items. There is room for full blocks: their stores need no mask.
template <uint words, uint each, typename From, typename To>
METAL_FUNC void sort_blocks(From from, uint count, To to, ushort lane) {
  for (uint first = 0; first < count; first += 32 * each) {
    Item<words> rows[each];
    read_block(rows, from, first, count, lane);
    sort_block(rows, lane);
    #pragma clang loop unroll(full)
    for (uint k = 0; k < each; ++k) {
      to.put(first + each * lane + k, rows[k]);
    }
  }
}

// Sorts up to 32 * each items, as many as there are in `memory`.
template <uint words, uint each, typename From, typename To>
METAL_FUNC void sort_short_row(From from, uint count, To to, threadgroup uint *memory,
                               ushort lane) {
  const SharedItems<words> shared{memory, 32 * each};
  sort_blocks<words, each>(from, count, shared, lane);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = lane; i < count; i += 32) {
    to.put(i, shared.at(i));
  }
}

// Merges the sorted items [a, a_end) and [b, b_end).
template <uint words, typename From, typename To>
METAL_FUNC void merge_items(From from, uint a, uint a_end, uint b, uint b_end, To to, uint out,
                            ushort lane) {
  const uint out_end = out + (a_end - a) + (b_end - b), any = a < a_end ? a : b;
  const uint steps = (a_end - a + 31) / 32 + (b_end - b + 31) / 32;
  Item<words> carried = last_item<words>();
  for (uint k = 0; k < steps; ++k) {
    const Item<words> head_a = from.at(a < a_end ? a : any), head_b = from.at(b < b_end ? b : any);
    const bool takes_b = a >= a_end || (b < b_end && head_b.is_before(head_a));
    const uint i = (takes_b ? b : a) + lane, end = takes_b ? b_end : a_end;
    a += takes_b ? 0 : 32;
    b += takes_b ? 32 : 0;
    Item<words> next = last_item<words>();
    if (i < end) {
      next = from.at(i);
    }
    if (k == 0) {
      carried = next;
      continue;
    }
    next = shuffle_item(next, 31);
    order_pair(carried, next);
    carried = sort_bitonic_lanes(carried, lane);
    if (out + lane < out_end) {
      to.put(out + lane, carried);
    }
    out += 32;
    carried = sort_bitonic_lanes(next, lane);
  }
  if (out + lane < out_end) {
    to.put(out + lane, carried);
  }
}

template <uint words, typename From, typename To>
METAL_FUNC void merge_runs(From from, uint count, uint length, To to, ushort lane) {
  for (uint first = 0; first < count; first += 2 * length) {
    const uint middle = min(first + length, count), end = min(middle + length, count);
    merge_items<words>(from, first, middle, middle, end, to, first, lane);
  }
}

// Sorts up to `size` items; there are so many in each half of `memory`.
template <uint words, uint size, typename From, typename To>
METAL_FUNC void sort_chunk(From from, uint count, To to, threadgroup uint *memory, ushort lane) {
  SharedItems<words> source{memory, size}, result{memory + words * size, size};
  sort_blocks<words, 8>(from, count, source, lane);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  uint length = 256;
  for (; 2 * length < count; length *= 2) {
    merge_runs<words>(source, count, length, result, lane);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    const SharedItems<words> merged = result;
    result = source;
    source = merged;
  }
  merge_runs<words>(source, count, length, to, lane);
}

// How many of the first `count` merged items are of [a, a + a_count).
template <uint words, typename From>
METAL_FUNC uint split_merge(From from, uint a, uint a_count, uint b, uint b_count, uint count) {
  uint low = count > b_count ? count - b_count : 0, high = min(count, a_count);
  while (low < high) {
    const uint middle = (low + high) / 2;
    if (from.at(b + count - 1 - middle).is_before(from.at(a + middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// The items [first, end) of merged runs of a row.
template <uint words, typename From, typename To>
METAL_FUNC void merge_chunk(From from, uint count, uint length, uint first, uint end, To to,
                            ushort lane) {
  const uint a = first / (2 * length) * 2 * length, b = min(a + length, count);
  const uint a_count = b - a, b_count = min(b + length, count) - b;
  const uint a_first = split_merge<words>(from, a, a_count, b, b_count, first - a);
  const uint a_end = split_merge<words>(from, a, a_count, b, b_count, end - a);
  merge_items<words>(from, a + a_first, a + a_end, b + (first - a - a_first), b + (end - a - a_end),
                     to, first, lane);
}

// -- a threadgroup for each row: a simdgroup for each 256 of `size` items

template <uint words, uint size, typename From, typename To>
METAL_FUNC void sort_in_threadgroup(From from, uint count, To to, threadgroup uint *memory,
                                    uint simdgroup, ushort lane) {
  const SharedItems<words> shared{memory, size};
  const uint own = 32 * simdgroup + lane, block = 256 * simdgroup;
  Item<words> rows[8];
  read_block(rows, from, block, count, lane);
  sort_block(rows, lane);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < 8; ++k) {
    shared.put(block + 8 * lane + k, rows[k]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint length = 512; length <= size; length *= 2) {
    for (uint half = length / 2; half >= 256; half /= 2) {
      const bool is_first = half == length / 2;
      for (uint k = own; k < size / 2; k += size / 8) {
        const uint in_half = k % half, i = (k - in_half) * 2 + in_half;
        const uint j = is_first ? (k - in_half) * 2 + 2 * half - 1 - in_half : i + half;
        Item<words> a = shared.at(i), b = shared.at(j);
        order_pair(a, b);
        shared.put(i, a);
        shared.put(j, b);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    #pragma clang loop unroll(full)
    for (uint k = 0; k < 8; ++k) {
      rows[k] = shared.at(block + 32 * k + lane);
    }
    sort_bitonic_rows(rows);
    #pragma clang loop unroll(full)
    for (uint k = 0; k < 8; ++k) {
      rows[k] = sort_bitonic_lanes(rows[k], lane);
      shared.put(block + 32 * k + lane, rows[k]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint i = own; i < count; i += size / 8) {
    to.put(i, shared.at(i));
  }
}

}  // namespace numpy
