// The fixed text of ReductionKernel's reductions. It is preceded by
// `reduce_type`, `reduce(a, b)` and `identity()`.
//
// A pass makes chunks of the elements that are reduced and leaves one number for each; passes
// follow each other until one chunk is left. No number is the sum of more than a few terms that
// were added one after the other, so that rounding errors grow like the logarithm of the count.
constant constexpr uint reduction_threads = 256;   // of a threadgroup
constant constexpr uint elements_per_thread = 16;  // of a pass over rows
constant constexpr uint rows_per_thread = 32;      // of a pass over columns

// The numbers that the pass before has left.
struct Partials {
  device const reduce_type *memory;
  uint count;

  METAL_FUNC reduce_type element(uint outer, uint reduced) const {
    return memory[ulong(outer) * count + reduced];
  }
};

// simd_shuffle has no form for 64-bit numbers, truth values and structs.
template <typename A>
constant constexpr bool can_shuffle =
    is_arithmetic_v<A> && !is_same_v<A, bool> && sizeof(A) <= 4;

template <typename A>
METAL_FUNC A reduce_simdgroup(A a) {
  for (ushort distance = 16; distance > 0; distance /= 2) {
    a = reduce(a, simd_shuffle_down(a, distance));
  }
  return a;
}

// The reduction of what all threads of the threadgroup have; right in its first thread.
template <typename A>
METAL_FUNC A reduce_threadgroup(A a, threadgroup A *shared, uint thread_index) {
  if constexpr (can_shuffle<A>) {
    a = reduce_simdgroup(a);
    if (thread_index % 32 == 0) {
      shared[thread_index / 32] = a;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_index < 32) {
      a = reduce_simdgroup(thread_index < reduction_threads / 32 ? shared[thread_index]
                                                                 : identity());
    }
  } else {
    shared[thread_index] = a;
    for (uint half_size = reduction_threads / 2; half_size > 0; half_size /= 2) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (thread_index < half_size) {
        shared[thread_index] = reduce(shared[thread_index], shared[thread_index + half_size]);
      }
    }
    a = shared[0];
  }
  return a;
}

// A threadgroup for each chunk of a row: neighbouring threads read neighbouring elements.
template <typename Source>
METAL_FUNC void reduce_rows(const thread Source &source, device reduce_type *partials, uint count,
                            uint chunks, threadgroup reduce_type *shared, uint group,
                            uint thread_index) {
  const uint chunk = group % chunks;
  const ulong first = ulong(chunk) * (reduction_threads * elements_per_thread) + thread_index;
  reduce_type a = identity();
  for (uint k = 0; k < elements_per_thread; ++k) {
    const ulong index = first + k * reduction_threads;
    if (index < count) {
      a = reduce(a, source.element(group / chunks, uint(index)));
    }
  }
  a = reduce_threadgroup(a, shared, thread_index);
  if (thread_index == 0) {
    partials[group] = a;
  }
}

// A thread for each chunk of a column: neighbouring threads read neighbouring columns.
template <typename Source>
METAL_FUNC void reduce_columns(const thread Source &source, device reduce_type *partials,
                               uint count, uint chunks, uint columns, uint i) {
  const uint column = i % columns;
  const uint chunk = i / columns;
  const uint first = chunk * rows_per_thread;
  reduce_type a = identity();
  for (uint k = 0; k < rows_per_thread && first + k < count; ++k) {
    a = reduce(a, source.element(column, first + k));
  }
  partials[ulong(column) * chunks + chunk] = a;
}
