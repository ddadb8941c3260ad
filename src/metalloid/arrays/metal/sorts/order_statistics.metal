// Elements at given positions of the sorted order of a row, digit by digit, the highest first.
//
// For each digit, threadgroups count its values among the elements whose higher digits are those of
// a sought element, the candidates; then a simdgroup finds the digit of each sought element. From
// the second digit on, each simdgroup stores the keys of the candidates of its chunk of the row.
namespace numpy {

constant constexpr uint statistic_lanes = 32;
constant constexpr uint statistic_bits = 10;  // of a digit
constant constexpr uint statistic_digits = 1 << statistic_bits;

// The digits of a key above the one at `shift`; none above the highest one.
template <typename Bits>
METAL_FUNC Bits digits_above(Bits key, uint shift) {
  const uint above = shift + statistic_bits;
  return above >= 8 * sizeof(Bits) ? Bits(0) : Bits(key >> above);
}

// Counts the digits at `shift` of candidates by a threadgroup. `sought` has the digits above of the
// sought elements, of which equal ones share the counters of the first. The candidates are among the
// `count` elements of the simdgroup's chunk for the first and the second digit; then `retained` has
// their keys. Returns the number of keys that are retained.
template <uint targets, bool is_first, bool is_second, typename Bits>
METAL_FUNC uint count_candidates(device const Bits *values, device Bits *retained, uint count,
                                 thread const Bits *sought, uint shift, Order<Bits> order,
                                 threadgroup atomic_uint *counts, uint lane) {
  const uint lanes_before = (1u << lane) - 1;
  uint length = 0;
  for (uint first = 0; first < count; first += statistic_lanes) {
    const uint k = first + lane;
    const bool takes_part = k < count;
    Bits key = 0;
    if (takes_part) {
      key = is_first || is_second ? order.key(values[k]) : retained[k];
    }
    const Bits above = digits_above(key, shift);
    uint which = is_first ? 0 : targets;
    for (uint t = is_first ? 0 : targets; t-- > 0;) {
      which = above == sought[t] ? t : which;
    }
    const bool is_candidate = takes_part && which < targets;
    const uint digit = uint(key >> shift) & (statistic_digits - 1);
    // Other elements are counted as well, in a counter of each lane.
    const uint counter =
        is_candidate ? which * statistic_digits + digit : targets * statistic_digits + lane;
    atomic_fetch_add_explicit(&counts[counter], 1, memory_order_relaxed);
    if (!is_first) {
      const uint candidates = uint(simd_vote::vote_t(simd_ballot(is_candidate)));
      if (is_candidate) {
        retained[length + popcount(candidates & lanes_before)] = key;
      }
      length += popcount(candidates);
    }
  }
  return length;
}

// The digit of a sought element, by a simdgroup: `rank` is its number among the candidates, from 1,
// and becomes that among the candidates with this digit.
METAL_FUNC uint find_digit(device const uint *counts, thread uint &rank, uint lane) {
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

}  // namespace numpy
