// Matrices of a simdgroup as the two elements of each thread, on the layout of Apple's GPUs: row
// lane / 4 & 4 + lane / 2 % 4, and columns (lane / 4 & 2) * 2 + lane % 2 * 2 and the next one.
// All threads of the simdgroup call these functions.

static float2 simd_matrix_product(float2 a, float2 b) {
  simdgroup_float8x8 left, right, product;
  left.thread_elements()[0] = a.x;
  left.thread_elements()[1] = a.y;
  right.thread_elements()[0] = b.x;
  right.thread_elements()[1] = b.y;
  simdgroup_multiply(product, left, right);
  return float2(product.thread_elements()[0], product.thread_elements()[1]);
}

static float2 simd_matrix_transpose(float2 m) {
  const uint lane = simd_prefix_exclusive_sum(1u);
  const uint row = (lane / 4 & 4) + lane / 2 % 4, column = (lane / 4 & 2) * 2 + lane % 2 * 2;
  // The threads that have rows `column` and `column + 1` of the column `row`.
  const uint first = row / 2 % 2 + (column % 4) * 2 + row / 4 * 8 + column / 4 * 16;
  const float2 x = float2(simd_shuffle(m.x, ushort(first)), simd_shuffle(m.y, ushort(first)));
  const float2 y =
      float2(simd_shuffle(m.x, ushort(first + 2)), simd_shuffle(m.y, ushort(first + 2)));
  return row % 2 == 0 ? float2(x.x, y.x) : float2(x.y, y.y);
}
