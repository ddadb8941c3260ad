// Values with their indices, for the search of the largest and the smallest. Plain MSL.
template <typename T>
struct value_index {
  T value;
  long index;

  value_index() = default;
  constexpr value_index(T value, long index) : value(value), index(index) {}
};

namespace numpy {

// The first of equal ones; the first NaN before everything else.
template <typename T>
METAL_FUNC bool comes_first(value_index<T> a, value_index<T> b, bool is_beyond) {
  const bool a_is_nan = isnan(a.value), b_is_nan = isnan(b.value);
  const bool ties = a.value == b.value || (a_is_nan && b_is_nan);
  return ties ? a.index < b.index : a_is_nan || (is_beyond && !b_is_nan);
}
// Whether a value takes the index of the best one so far, which came before it. Without branches.
template <typename T>
METAL_FUNC bool is_larger(T x, T best) {
  return !(x <= best) & !isnan(best);
}
template <typename T>
METAL_FUNC bool is_smaller(T x, T best) {
  return !(x >= best) & !isnan(best);
}
// Whether a value is the extreme of several, of which it is one.
template <typename T>
METAL_FUNC bool is_same_extreme(T x, T extreme) {
  return x == extreme | isnan(x);
}

template <typename T>
METAL_FUNC value_index<T> larger(value_index<T> a, value_index<T> b) {
  return comes_first(a, b, a.value > b.value) ? a : b;
}
template <typename T>
METAL_FUNC value_index<T> smaller(value_index<T> a, value_index<T> b) {
  return comes_first(a, b, a.value < b.value) ? a : b;
}

template <typename T>
METAL_FUNC value_index<T> from_lane(value_index<T> x, ushort distance) {
  return {from_lane(x.value, distance), from_lane(x.index, distance)};
}

}  // namespace numpy
