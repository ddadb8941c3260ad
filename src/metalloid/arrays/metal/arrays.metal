// What generated kernels of arrays call: operations that MSL does not have, or that have other
// results there than NumPy's. Plain MSL.
namespace numpy {

// What numbers are computed in that are rounded once; MSL's own functions do so with half floats.
template <typename T>
using wide = conditional_t<sizeof(T) < 4, float, T>;

// Integers wrap around. MSL leaves the overflow of signed ones undefined, and short ones are
// computed as int.
template <typename T>
using wrapping = conditional_t<is_floating_point_v<T> || is_same_v<T, bfloat>, T,
                               conditional_t<sizeof(T) == 8, ulong, uint>>;

template <typename T>
METAL_FUNC T add(T a, T b) { return T(wrapping<T>(a) + wrapping<T>(b)); }
template <typename T>
METAL_FUNC T subtract(T a, T b) { return T(wrapping<T>(a) - wrapping<T>(b)); }
template <typename T>
METAL_FUNC T multiply(T a, T b) { return T(wrapping<T>(a) * wrapping<T>(b)); }
template <typename T>
METAL_FUNC T square(T x) { return multiply(x, x); }
METAL_FUNC bool add(bool a, bool b) { return a || b; }
METAL_FUNC bool multiply(bool a, bool b) { return a && b; }

template <typename T>
METAL_FUNC T negative(T x) {
  if constexpr (is_integral_v<T>) {
    return subtract(T(0), x);
  } else {
    return -x;
  }
}

template <typename T>
METAL_FUNC T absolute(T x) {
  if constexpr (is_integral_v<T>) {
    return x < T(0) ? negative(x) : x;
  } else {
    return metal::fabs(x);
  }
}
METAL_FUNC bool absolute(bool x) { return x; }

template <typename T>
METAL_FUNC T reciprocal(T x) { return T(1) / x; }

template <typename T>
METAL_FUNC bool isnan(T x) { return !(x == x); }
template <typename T>
METAL_FUNC bool isinf(T x) {
  if constexpr (is_integral_v<T>) {
    return false;
  } else {
    return x == x && !(x - x == x - x);
  }
}
template <typename T>
METAL_FUNC bool isfinite(T x) {
  if constexpr (is_integral_v<T>) {
    return true;
  } else {
    return x - x == x - x;
  }
}

// NaN if one of them is, as in NumPy; MSL's max and min give the other number. A comparison and the
// choice are one instruction.
template <typename T>
METAL_FUNC T maximum(T a, T b) {
  const T larger = a > b ? a : b;
  return isnan(a) ? a : larger;
}
template <typename T>
METAL_FUNC T minimum(T a, T b) {
  const T smaller = a < b ? a : b;
  return isnan(a) ? a : smaller;
}

// The other one if one of them is NaN, as NumPy's fmax and fmin.
template <typename T>
METAL_FUNC T larger_number(T a, T b) {
  const T larger = b > a ? b : a;
  return isnan(a) ? b : larger;
}
template <typename T>
METAL_FUNC T smaller_number(T a, T b) {
  const T smaller = b < a ? b : a;
  return isnan(a) ? b : smaller;
}

template <typename T>
METAL_FUNC T sign(T x) {
  return isnan(x) ? x : T(int(x > T(0)) - int(x < T(0)));
}

template <typename T>
METAL_FUNC T floor(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::floor(x);
  }
}
template <typename T>
METAL_FUNC T ceil(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::ceil(x);
  }
}
template <typename T>
METAL_FUNC T trunc(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::trunc(x);
  }
}
template <typename T>
METAL_FUNC T round(T x) {
  if constexpr (is_integral_v<T>) {
    return x;
  } else {
    return metal::rint(x);
  }
}

// Division by zero gives zero; the least number divided by -1 is itself.
template <typename T>
METAL_FUNC T floor_divide_integers(T a, T b) {
  if (b == T(0)) {
    return T(0);
  }
  if (b == T(-1) && T(-1) < T(0)) {
    return negative(a);
  }
  const T quotient = a / b;
  return a % b != T(0) && (a < T(0)) != (b < T(0)) ? T(quotient - 1) : quotient;
}
// Quotients of infinities and by them stay what they are: the standard asks for it, while NumPy has
// NaN for inf // 2 and -1 for 1 // -inf. The rounded quotient of others may be a whole number off;
// the exact remainder tells how many.
template <typename T>
METAL_FUNC T floor_divide_floats(T a, T b) {
  if (b == T(0) || isinf(a) || isinf(b)) {
    return a / b;
  }
  const T rest = metal::fmod(a, b);
  const bool is_above = rest != T(0) && (b < T(0)) != (rest < T(0));
  T quotient = metal::rint((a - rest) / b);
  if (metal::fabs(quotient) < T(1) / numeric_limits<T>::epsilon()) {
    quotient += metal::rint((metal::fma(-quotient, b, a) - rest) / b);
  }
  quotient -= is_above ? T(1) : T(0);
  return quotient == T(0) ? metal::copysign(T(0), a / b) : quotient;
}
template <typename T>
METAL_FUNC T floor_divide(T a, T b) {
  if constexpr (is_integral_v<T>) {
    return floor_divide_integers(a, b);
  } else {
    return T(floor_divide_floats(wide<T>(a), wide<T>(b)));
  }
}

template <typename T>
METAL_FUNC T remainder(T a, T b) {
  if constexpr (is_integral_v<T>) {
    if (b == T(0) || (b == T(-1) && T(-1) < T(0))) {
      return T(0);
    }
    const T rest = a % b;
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? T(rest + b) : rest;
  } else {
    const wide<T> divisor = wide<T>(b), rest = metal::fmod(wide<T>(a), divisor);
    if (rest == wide<T>(0)) {
      return metal::copysign(T(0), b);
    }
    return T((b < T(0)) != (rest < wide<T>(0)) ? rest + divisor : rest);
  }
}

// Of integers by repeated squares; of negative exponents what is left of the fraction.
template <typename T>
METAL_FUNC T power(T a, T b) {
  if constexpr (is_integral_v<T>) {
    if (b < T(0)) {
      const T odd = T(b & T(1));
      return a == T(1) ? T(1) : a == T(-1) ? (odd != T(0) ? a : T(1)) : T(0);
    }
    T result = T(1);
    for (wrapping<T> left = wrapping<T>(b); left != 0; left >>= 1) {
      result = (left & 1) != 0 ? multiply(result, a) : result;
      a = multiply(a, a);
    }
    return result;
  } else {
    return metal::pow(a, b);
  }
}

// W. Kahan's two, exact where e^x - 1 or log(1 + x) would cancel: the error of the rounded
// argument is divided out. N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 1.14.1.
template <typename T>
METAL_FUNC T expm1(T value) {
  const wide<T> one = wide<T>(1), x = wide<T>(value), power = metal::exp(x), less = power - one;
  if (power == one) {
    return value;
  }
  return T(less == -one || isinf(power) ? less : less * (x / metal::log(power)));
}
template <typename T>
METAL_FUNC T log1p(T value) {
  const wide<T> one = wide<T>(1), x = wide<T>(value), more = one + x;
  if (more == one) {
    return value;
  }
  return T(more == wide<T>(INFINITY) ? more : metal::log(more) * (x / (more - one)));
}

template <typename T>
METAL_FUNC T logaddexp(T a, T b) {
  const wide<T> high = wide<T>(maximum(a, b)), low = wide<T>(minimum(a, b));
  const bool is_special = isinf(high) || isnan(high);
  return T(is_special ? high : high + log1p(metal::exp(low - high)));
}

// The numbers are scaled by a power of two, so that their squares are normal floats.
template <typename T>
METAL_FUNC T hypot(T a, T b) {
  if (isinf(a) || isinf(b)) {
    return T(INFINITY);
  }
  const float x = metal::fabs(float(a)), y = metal::fabs(float(b)), high = maximum(x, y);
  const float scale = high > 0x1p62f ? 0x1p-66f : high < 0x1p-62f ? 0x1p88f : 1.0f;
  const float larger = scale * high, smaller = scale * minimum(x, y);
  return T(metal::sqrt(metal::fma(larger, larger, smaller * smaller)) / scale);
}

template <typename T>
METAL_FUNC T atan2(T y, T x) { return metal::atan2(y, x); }

template <typename T>
METAL_FUNC T invert(T x) { return T(~x); }
METAL_FUNC bool invert(bool x) { return !x; }

// Shifts by the number of bits or more leave nothing but the sign.
// In two steps, neither of them too long: a test clang would leave to an instruction of NVIDIA's,
// which looks at 32 of 64 bits. Negative amounts are large.
template <typename T>
METAL_FUNC T shift_left(T x, T amount) {
  const uint all = uint(metal::min(wrapping<T>(amount), wrapping<T>(8 * sizeof(T))));
  return T(wrapping<T>(x) << (all / 2) << (all - all / 2));
}
template <typename T>
METAL_FUNC T shift_right(T x, T amount) {
  const uint all = uint(metal::min(wrapping<T>(amount), wrapping<T>(8 * sizeof(T))));
  return T(x >> (all / 2) >> (all - all / 2));
}

template <typename T>
METAL_FUNC T real(T x) { return x; }
template <typename T>
METAL_FUNC T imag(T) { return T(0); }
template <typename T>
METAL_FUNC T conj(T x) { return x; }

// What an integer type cannot hold becomes the nearest number that it can, and NaN becomes 0: C++
// leaves both undefined, and NumPy has what the processor does.
template <typename To, typename From>
METAL_FUNC To cast(From x) {
  if constexpr (is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (is_integral_v<To> && !is_integral_v<From>) {
    // The greatest one is rounded up, if at all, so that all below it fit.
    const From least = From(numeric_limits<To>::min()), greatest = From(numeric_limits<To>::max());
    if (x >= greatest) {
      return numeric_limits<To>::max();
    }
    return x > least ? To(x) : isnan(x) ? To(0) : numeric_limits<To>::min();
  } else if constexpr (sizeof(From) == 2 && !is_integral_v<From>) {
    return To(float(x));  // half and bfloat have no conversion to each other
  } else {
    return To(x);
  }
}

// The least and the greatest number of a type: what maxima and minima start from.
template <typename T>
METAL_FUNC T lowest() {
  if constexpr (is_integral_v<T>) {
    return numeric_limits<T>::min();
  } else {
    return T(-INFINITY);
  }
}
template <typename T>
METAL_FUNC T highest() {
  if constexpr (is_integral_v<T>) {
    return numeric_limits<T>::max();
  } else {
    return T(INFINITY);
  }
}

}  // namespace numpy
