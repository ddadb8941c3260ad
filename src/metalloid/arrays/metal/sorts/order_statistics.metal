// Elements at given positions of the sorted order of a row, by ranges of keys in which they lie.
//
// The first range of an element lies between two elements of a sample of the row (R. Floyd and R.
// Rivest, "Expected time bounds for selection", CACM 1975). A pass over the row counts the keys below
// and in the ranges, and each simdgroup stores those in a range, the candidates; if the element is
// in none, its range becomes the keys below or above. Each further pass counts the candidates in
// equal parts of the ranges, and continues with the one that has the element.
namespace numpy {

constant constexpr uint statistic_lanes = 32;
constant constexpr uint statistic_bits = 10;
constant constexpr uint statistic_digits = 1 << statistic_bits;  // into which ranges are divided
constant constexpr uint sample_bits = 11;
constant constexpr uint sample_size = 1 << sample_bits;

// The keys from `least` to `greatest`, among which the element sought is number `rank`, from 1.
template <typename Bits>
struct KeyRange {
  Bits least, greatest;
  uint rank;

  METAL_FUNC bool has(Bits key) const { return key >= least && key <= greatest; }
  METAL_FUNC bool is_same(KeyRange other) const {
    return least == other.least && greatest == other.greatest;
  }
  METAL_FUNC bool has_one_key() const { return least == greatest; }
  METAL_FUNC uint shift() const {
    const Bits size = greatest - least;
    const uint bits = 64 - uint(clz(ulong(size)));
    return bits > statistic_bits ? bits - statistic_bits : 0;
  }
  METAL_FUNC uint digit(Bits key, uint shift) const { return uint(Bits(key - least) >> shift); }
  METAL_FUNC void narrow(uint digit, uint shift) {
    const Bits size = Bits(Bits(Bits(1) << shift) - 1);
    least = Bits(least + Bits(Bits(digit) << shift));
    greatest = Bits(greatest - least) > size ? Bits(least + size) : greatest;
  }
};

// The digit of the element sought, by a simdgroup; `rank` becomes that among keys with this digit.
template <typename Counts>
METAL_FUNC uint find_digit(Counts counts, thread uint &rank, uint lane) {
  constexpr uint each = statistic_digits / statistic_lanes;
  uint own = 0;
  for (uint k = 0; k < each; ++k) {
    own += counts[lane * each + k];
  }
  uint before = simd_prefix_exclusive_sum(own), digit = 0, skipped = 0;
  for (uint k = 0; k < each; ++k) {
    const uint more = counts[lane * each + k];
    const bool is_it = before < rank && rank <= before + more;  // for one lane
    digit = is_it ? lane * each + k : digit;
    skipped = is_it ? before : skipped;
    before += more;
  }
  rank -= simd_sum(skipped);
  return simd_sum(digit);
}

METAL_FUNC void count_digit(threadgroup uint *counts, uint digit) {
  atomic_fetch_add_explicit((threadgroup atomic_uint *)counts + digit, 1, memory_order_relaxed);
}

// The range of a target. Bounds of ranges are stored for each step, so that all can be compared.
template <typename Bits>
METAL_FUNC KeyRange<Bits> load_range(device const Bits *bounds, uint target, uint rank) {
  return KeyRange<Bits>{bounds[2 * target], bounds[2 * target + 1], rank};
}

template <typename Bits>
METAL_FUNC void store_range(KeyRange<Bits> range, device Bits *bounds, uint target) {
  bounds[2 * target] = range.least;
  bounds[2 * target + 1] = range.greatest;
}

// The first target with the same range, whose counters the others share.
template <typename Bits>
METAL_FUNC uint first_same(device const Bits *bounds, uint target) {
  uint first = target;
  for (uint k = target; k-- > 0;) {
    const bool is_same = load_range(bounds, k, 0).is_same(load_range(bounds, target, 0));
    first = is_same ? k : first;
  }
  return first;
}

// The ranges of a row, and which are counted: of those that are the same, the first.
template <uint targets, typename Bits>
struct Ranges {
  KeyRange<Bits> own[targets];
  bool is_counted[targets];

  METAL_FUNC Ranges(device const Bits *bounds) {
    #pragma clang loop unroll(full)
    for (uint t = 0; t < targets; ++t) {
      own[t] = load_range(bounds, t, 0);
      is_counted[t] = true;
      #pragma clang loop unroll(full)
      for (uint k = 0; k < t; ++k) {
        is_counted[t] = is_counted[t] && !own[k].is_same(own[t]);
      }
    }
  }
  METAL_FUNC bool have_one_key() const {
    bool result = true;
    #pragma clang loop unroll(full)
    for (uint t = 0; t < targets; ++t) {
      result = result && own[t].has_one_key();
    }
    return result;
  }
};

// -- the sample

// Copies elements to `sample` as keys, one at random from each of as many chunks of the row.
template <typename Bits>
METAL_FUNC void take_sample(device const Bits *values, uint count, Order<Bits> order,
                            threadgroup Bits *sample, uint lane) {
  for (uint k = lane; k < sample_size; k += statistic_lanes) {
    const uint first = uint((ulong(k) * count) >> sample_bits);
    const uint end = uint((ulong(k + 1) * count) >> sample_bits);
    const uint random = (k + 1) * 0x9E3779B9u;  // D. Knuth's multiplicative hashing
    const uint at = first + uint((ulong(random) * (end - first)) >> 32);
    sample[k] = order.key(values[at]);
  }
}

// The key of the sample that would be number `rank`, from 1, if it were sorted.
template <typename Bits>
METAL_FUNC Bits key_of_sample(threadgroup const Bits *sample, uint rank, threadgroup uint *counts,
                              uint lane) {
  KeyRange<Bits> range{0, Bits(~Bits(0)), rank};
  while (!range.has_one_key()) {
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = lane; k < statistic_digits; k += statistic_lanes) {
      counts[k] = 0;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    const uint shift = range.shift();
    for (uint k = lane; k < sample_size; k += statistic_lanes) {
      const Bits key = sample[k];
      if (range.has(key)) {
        count_digit(counts, range.digit(key, shift));
      }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    range.narrow(find_digit(counts, range.rank, lane), shift);
  }
  return range.least;
}

// A range that has the element at a position of the sorted row, but for about one of 10,000.
template <typename Bits>
METAL_FUNC KeyRange<Bits> range_of_sample(threadgroup const Bits *sample, uint position, uint count,
                                          threadgroup uint *counts, uint lane) {
  const float share = float(position) / float(count);
  const float margin = 4.0f * sqrt(float(sample_size) * share * max(1.0f - share, 0.0f)) + 4.0f;
  const float rank = share * float(sample_size) + 1.0f;
  KeyRange<Bits> range{0, Bits(~Bits(0)), position + 1};
  if (rank - margin >= 1.0f) {
    range.least = key_of_sample(sample, uint(rank - margin), counts, lane);
  }
  if (rank + margin <= float(sample_size)) {
    range.greatest = key_of_sample(sample, uint(rank + margin), counts, lane);
  }
  return range;
}

// Makes ranges that overlap the same, so that a pass tests less.
template <typename Bits>
METAL_FUNC void unite_ranges(device Bits *bounds, uint targets) {
  for (uint k = 0; k < targets * targets * targets; ++k) {
    const uint first = k % targets, second = k / targets % targets;
    const KeyRange<Bits> a = load_range((device const Bits *)bounds, first, 0);
    const KeyRange<Bits> b = load_range((device const Bits *)bounds, second, 0);
    if (a.least <= b.greatest && b.least <= a.greatest) {
      const KeyRange<Bits> both{min(a.least, b.least), max(a.greatest, b.greatest), 0};
      store_range(both, bounds, first);
      store_range(both, bounds, second);
    }
  }
}

// Continues with the keys below or above the range if the element is not in it; whether it is.
template <typename Bits>
METAL_FUNC bool choose_range(thread KeyRange<Bits> &range, uint below, uint inside) {
  if (range.rank <= below) {
    range = KeyRange<Bits>{0, Bits(range.least - 1), range.rank};
    return false;
  }
  range.rank -= below;
  if (range.rank > inside) {
    range = KeyRange<Bits>{Bits(range.greatest + 1), Bits(~Bits(0)), range.rank - inside};
    return false;
  }
  return true;
}

// -- passes over the row

// The candidates that a lane has stored: its list is interleaved with those of the other lanes.
template <typename Bits>
struct Candidates {
  device Bits *keys;
  uint length;

  METAL_FUNC Bits get(uint k) const { return keys[k * statistic_lanes]; }
  METAL_FUNC void add(Bits key) { keys[length++ * statistic_lanes] = key; }
};

// Counts a key that is below or in ranges, and stores it if it is in one.
template <uint targets, typename Bits>
METAL_FUNC void count_key(Bits key, thread const Ranges<targets, Bits> &ranges,
                          thread Candidates<Bits> &candidates, thread uint *below) {
  bool is_candidate = false;
  #pragma clang loop unroll(full)
  for (uint t = 0; t < targets; ++t) {
    if (ranges.is_counted[t]) {
      below[t] += key < ranges.own[t].least ? 1 : 0;
      is_candidate = is_candidate || ranges.own[t].has(key);
    }
  }
  if (is_candidate) {
    candidates.add(key);
  }
}

// Counts the keys of a simdgroup's chunk of the row below and in the ranges, and stores those that
// are in one.
template <uint targets, typename Bits>
METAL_FUNC void count_ranges(device const Bits *values, uint count,
                             thread const Ranges<targets, Bits> &ranges,
                             Order<Bits> order, thread Candidates<Bits> &candidates,
                             thread uint *below, thread uint *inside, uint lane) {
  const uint full = count / statistic_lanes * statistic_lanes;
  for (uint first = 0; first < full; first += statistic_lanes) {
    count_key(order.key(values[first + lane]), ranges, candidates, below);
  }
  if (full + lane < count) {
    count_key(order.key(values[full + lane]), ranges, candidates, below);
  }
  for (uint k = 0; k < candidates.length; ++k) {
    const Bits key = candidates.get(k);
    #pragma clang loop unroll(full)
    for (uint t = 0; t < targets; ++t) {
      inside[t] += ranges.own[t].has(key) ? 1 : 0;
    }
  }
}

// Counts the digits of a key that is a candidate, and stores it.
template <uint targets, typename Bits>
METAL_FUNC void count_digits(Bits key, thread const Ranges<targets, Bits> &ranges,
                             thread Candidates<Bits> &candidates, threadgroup uint *counts) {
  bool is_candidate = false;
  #pragma clang loop unroll(full)
  for (uint t = 0; t < targets; ++t) {
    const KeyRange<Bits> range = ranges.own[t];
    if (ranges.is_counted[t] && !range.has_one_key() && range.has(key)) {
      count_digit(counts, t * statistic_digits + range.digit(key, range.shift()));
      is_candidate = true;
    }
  }
  if (is_candidate) {
    candidates.add(key);
  }
}

}  // namespace numpy
