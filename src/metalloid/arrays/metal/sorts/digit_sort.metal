// Radix sort of chunks of rows, the lowest digit of 8 bits first, by one thread for each chunk: for a
// few cores. Where many digits differ, only the highest ones are sorted by, and insertion moves the
// few items that are not in order then, in the manner of the last steps of quicksort (R. Sedgewick,
// "Implementing Quicksort programs", 1978).
namespace numpy {

constant constexpr uint digit_values = 256;
constant constexpr uint insertion_moves = 4;  // maximum per item

template <typename Bits>
METAL_FUNC uint digit_of(Bits key, uint pass) {
  return uint(key >> Bits(8 * pass)) & (digit_values - 1);
}

// Keys, and their indices if required, that passes move from one buffer to the other.
template <typename Bits, bool has_index>
struct DigitItems {
  device Bits *keys;
  device uint *indices;

  METAL_FUNC void put(uint k, Bits key, uint index) const {
    keys[k] = key;
    if (has_index) {
      indices[k] = index;
    }
  }
  METAL_FUNC uint index(uint k) const {
    return has_index ? indices[k] : 0;
  }
};

// Where the items of each digit begin. After a pass, `next` is where they end.
METAL_FUNC void find_starts(thread uint *next, bool is_used) {
  uint sum = 0;
  for (uint k = 0; k < digit_values; ++k) {
    const uint count = next[k];
    next[k] = sum;
    sum = is_used ? count : sum + count;
  }
}

template <typename Bits, bool has_index>
METAL_FUNC void move_by_digit(DigitItems<Bits, has_index> from, DigitItems<Bits, has_index> to,
                              uint count, uint pass, thread uint *next) {
  for (uint i = 0; i < count; ++i) {
    const Bits key = from.keys[i];
    const uint digit = digit_of(key, pass), at = next[digit];
    next[digit] = at + 1;
    to.put(at, key, from.index(i));
  }
}

// Whether the items are sorted; they are not if that takes too many moves.
template <typename Bits, bool has_index>
METAL_FUNC bool insert_items(DigitItems<Bits, has_index> items, uint count) {
  ulong moves = 0;
  Bits last = items.keys[0];
  for (uint i = 1; i < count; ++i) {
    const Bits key = items.keys[i];
    if (key >= last) {
      last = key;
      continue;
    }
    const uint index = items.index(i);
    uint k = i;
    for (; k > 0 && items.keys[k - 1] > key; --k) {
      items.put(k, items.keys[k - 1], items.index(k - 1));
    }
    items.put(k, key, index);
    moves += i - k;
    if (moves > ulong(insertion_moves) * count) {
      return false;
    }
  }
  return true;
}

// Sorts the items of a row from `first` on; `items` and `others` have room for them.
template <uint words, typename Bits, bool has_index, typename To>
METAL_FUNC void sort_by_digits(device const Bits *values, Order<Bits> order, uint first, uint count,
                               DigitItems<Bits, has_index> items,
                               DigitItems<Bits, has_index> others, To to) {
  constexpr uint digits = sizeof(Bits);
  uint next[digits * digit_values];
  for (uint k = 0; k < digits * digit_values; ++k) {
    next[k] = 0;
  }
  Bits least = 0;  // of integers, whose high digits are often those of their sign
  if (order.flip == order.sign) {
    least = order.key(values[0]);
    for (uint i = 1; i < count; ++i) {
      least = min(least, order.key(values[i]));
    }
  }
  for (uint i = 0; i < count; ++i) {
    const Bits key = order.key(values[i]) - least;
    items.put(i, key, first + i);
    #pragma clang loop unroll(full)
    for (uint pass = 0; pass < digits; ++pass) {
      next[pass * digit_values + digit_of(key, pass)] += 1;
    }
  }
  uint differing = 0, used = 0;
  for (uint pass = 0; pass < digits; ++pass) {
    const uint same = next[pass * digit_values + digit_of(items.keys[0], pass)];
    differing |= same < count ? 1u << pass : 0;
  }
  const uint enough = count < (1u << 13) ? 3 : count < (1u << 22) ? 4 : 5;
  uint passes = differing;
  while (popcount(passes) > enough) {
    passes &= passes - 1;
  }
  for (bool is_sorted = false; !is_sorted; passes = differing) {
    for (uint pass = 0; pass < digits; ++pass) {
      if ((passes >> pass & 1) != 0) {
        find_starts(next + pass * digit_values, (used >> pass & 1) != 0);
        move_by_digit(items, others, count, pass, next + pass * digit_values);
        used |= 1u << pass;
        const DigitItems<Bits, has_index> moved = others;
        others = items;
        items = moved;
      }
    }
    is_sorted = passes == differing || insert_items(items, count);
  }
  for (uint i = 0; i < count; ++i) {
    to.put(i, item_of<words, has_index>(Bits(items.keys[i] + least), items.index(i)));
  }
}

}  // namespace numpy
