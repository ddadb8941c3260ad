// How threads that are neighbours take four elements at once. Plain MSL.
namespace numpy {

template <typename T>
using four = vec<T, 4>;

template <typename T>
METAL_FUNC four<T> read_four(device const T *from) {
  return *reinterpret_cast<device const four<T> *>(from);
}
template <typename T>
METAL_FUNC void write_four(device T *to, four<T> values) {
  *reinterpret_cast<device four<T> *>(to) = values;
}

}  // namespace numpy
