// Values with their places, for the search of the largest and the smallest. Plain MSL.
template <typename T>
struct placed {
  T value;
  long place;

  placed() = default;
  constexpr placed(T value, long place) : value(value), place(place) {}
};

namespace numpy {

// The first of equal ones; the first NaN before everything else.
template <typename T>
METAL_FUNC bool comes_first(placed<T> a, placed<T> b, bool is_beyond) {
  const bool a_is_nan = isnan(a.value), b_is_nan = isnan(b.value);
  const bool ties = a.value == b.value || (a_is_nan && b_is_nan);
  return ties ? a.place < b.place : a_is_nan || (is_beyond && !b_is_nan);
}
// Whether a value takes the place of the best one so far, which came before it. Without branches.
template <typename T>
METAL_FUNC bool is_larger(T x, T best) {
  return !(x <= best) & !isnan(best);
}
template <typename T>
METAL_FUNC bool is_smaller(T x, T best) {
  return !(x >= best) & !isnan(best);
}

template <typename T>
METAL_FUNC placed<T> larger(placed<T> a, placed<T> b) {
  return comes_first(a, b, a.value > b.value) ? a : b;
}
template <typename T>
METAL_FUNC placed<T> smaller(placed<T> a, placed<T> b) {
  return comes_first(a, b, a.value < b.value) ? a : b;
}

template <typename T>
METAL_FUNC placed<T> from_lane(placed<T> x, ushort distance) {
  return {from_lane(x.value, distance), from_lane(x.place, distance)};
}

}  // namespace numpy
