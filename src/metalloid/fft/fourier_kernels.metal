// Kernels of Fourier transforms whose rows lie anywhere in memory.

// It says twice as many threads as it has: registers for as many let two threadgroups run at once.
template <typename T, typename From, typename To, bool has_rare>
[[kernel, max_total_threads_per_threadgroup(2 * fourier::threads)]] void transform_rows(
    device const From *values, device To *results, device const vec<T, 2> *twiddles,
    constant fourier::Pass &given, constant T &scale,
    uint3 group [[threadgroup_position_in_grid]], uint own [[thread_index_in_threadgroup]]) {
  threadgroup vec<T, 2> tile[fourier::capacity<T>];
  fourier::transform_tile<T, has_rare>(values, results, twiddles, given, scale, tile, group, own);
}

// Each row times the same numbers, in place.
template <typename T>
[[kernel]] void multiply_rows(device vec<T, 2> *values, device const vec<T, 2> *by,
                              constant uint &length, uint2 element [[thread_position_in_grid]]) {
  const ulong at = ulong(element.y) * length + element.x;
  values[at] = fourier::product<T>(values[at], by[element.x]);
}
