// What all products of matrices share. Plain MSL.
//
// A kernel says how it reads an element of a factor (`Left`, `Right`, by row and column), and what
// it stores for a sum (`Store`), so that casts of operands and activations of results are fused.
namespace numpy {

METAL_FUNC float times_plus(float a, float b, float sum) { return fma(a, b, sum); }
template <typename T>
METAL_FUNC T times_plus(T a, T b, T sum) { return add(multiply(a, b), sum); }

#if METALLOID_BFLOAT_DOTS
// Pairs of bfloats, which follow each other along the depth.
METAL_FUNC float times_plus(uint a, uint b, float sum) {
  return metalloid::dot_of_bfloats(a, b, sum);
}

METAL_FUNC uint read_pair(device const bfloat *from, uint number) {
  typedef uint pair __attribute__((aligned(2)));
  return ((device const pair *)from)[number];
}
#endif

// Columns that are read side by side on CPUs: those of a panel of a packed factor.
constexpr constant uint panel_columns = 32;

}  // namespace numpy
