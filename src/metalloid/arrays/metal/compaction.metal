// Elements that a mask selects, or their indices: each simdgroup counts those of a chunk, and writes them
// after those of the chunks before it.
namespace numpy {

constant constexpr uint compaction_lanes = 32;

METAL_FUNC uint true_lanes(bool vote) { return uint(simd_vote::vote_t(simd_ballot(vote))); }

// A chunk is a multiple of the lanes, so that all lanes loop together.
METAL_FUNC uint count_true(device const bool *mask, uint first, uint end, uint size, uint lane) {
  uint count = 0;
  #pragma clang loop unroll_count(4)
  for (uint k = first; k < end; k += compaction_lanes) {
    count += popcount(true_lanes(k + lane < size && mask[k + lane]));
  }
  return count;
}

// Writes the elements of a chunk that a mask selects; `read` is a function of their index.
template <typename T, typename Read>
METAL_FUNC void write_true(device const bool *mask, uint first, uint end, uint size, device T *to,
                           uint lane, Read read) {
  const uint lower = (1u << lane) - 1;
  uint next = 0;
  #pragma clang loop unroll_count(4)
  for (uint k = first; k < end; k += compaction_lanes) {
    const bool is_true = k + lane < size && mask[k + lane];
    const uint votes = true_lanes(is_true);
    if (is_true) {
      to[next + popcount(votes & lower)] = read(k + lane);
    }
    next += popcount(votes);
  }
}

}  // namespace numpy
