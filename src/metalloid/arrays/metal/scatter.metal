// Scatters: elements of an array are combined with new ones at an index each. Rows of `inner`
// elements have one index. `step` is 1, or 0 if all new elements are equal.
namespace numpy {

struct Set {
  template <typename T>
  static METAL_FUNC T of(T, T b) { return b; }
};
struct Add {
  template <typename T>
  static METAL_FUNC T of(T a, T b) { return add(a, b); }
};
struct Multiply {
  template <typename T>
  static METAL_FUNC T of(T a, T b) { return multiply(a, b); }
};
struct Maximum {
  template <typename T>
  static METAL_FUNC T of(T a, T b) { return maximum(a, b); }
};
struct Minimum {
  template <typename T>
  static METAL_FUNC T of(T a, T b) { return minimum(a, b); }
};

// All new elements in order, of one column or of all: by a thread.
template <typename Op, uint step, typename T, typename Index>
METAL_FUNC void scatter_in_order(device T *to, device const T *from, device const Index *index,
                                 uint count, uint columns, uint inner) {
  for (uint i = 0; i < count; ++i) {
    const ulong row = ulong(index[i]) * inner, first = ulong(i) * inner;
    for (uint k = 0; k < columns; ++k) {
      to[row + k] = Op::of(to[row + k], from[(first + k) * step]);
    }
  }
}

// The new element `i` in the order of sorted indices, and all after it with the same index: by the
// thread of the first of them.
template <typename Op, uint step, typename T, typename Index>
METAL_FUNC void scatter_sorted(device T *to, device const T *from, device const Index *sorted,
                               device const long *order, uint count, uint inner, uint thread_) {
  const uint first = thread_ / inner, column = thread_ % inner;
  const Index row = sorted[first];
  if (first > 0 && sorted[first - 1] == row) {
    return;
  }
  device T *at = to + ulong(row) * inner + column;
  T value = *at;
  for (uint i = first; i < count && sorted[i] == row; ++i) {
    value = Op::of(value, from[(ulong(order[i]) * inner + column) * step]);
  }
  *at = value;
}

// Combines an element of at most 32 bits by exchanging the word that contains it.
template <typename Op, typename T>
METAL_FUNC void exchange(device T *to, ulong i, T x) {
  using bits = conditional_t<sizeof(T) == 1, uchar, conditional_t<sizeof(T) == 2, ushort, uint>>;
  constexpr uint per_word = 4 / sizeof(T);
  device atomic_uint *word = (device atomic_uint *)to + i / per_word;
  const uint shift = uint(i % per_word) * (32 / per_word);
  const uint mask = (sizeof(T) == 4 ? ~0u : (1u << (8 * sizeof(T) % 32)) - 1u) << shift;
  uint before = atomic_load_explicit(word, memory_order_relaxed);
  bool is_done = false;
  while (!is_done) {
    const T value = Op::of(as_type<T>(bits((before & mask) >> shift)), x);
    const uint after = (before & ~mask) | (uint(as_type<bits>(value)) << shift);
    is_done = atomic_compare_exchange_weak_explicit(word, &before, after, memory_order_relaxed,
                                                    memory_order_relaxed);
  }
}

template <typename T>
METAL_FUNC void add_atomically(device T *to, T x) {
  atomic_fetch_add_explicit((device _atomic<T> *)to, x, memory_order_relaxed);
}

// As two words: the sum of the lower ones carries into the upper one.
METAL_FUNC void add_words(device uint *to, ulong x) {
  const uint low = uint(x);
  const uint before =
      atomic_fetch_add_explicit((device atomic_uint *)to, low, memory_order_relaxed);
  const uint high = uint(x >> 32) + uint(before + low < low);
  if (high != 0) {
    atomic_fetch_add_explicit((device atomic_uint *)to + 1, high, memory_order_relaxed);
  }
}

}  // namespace numpy
