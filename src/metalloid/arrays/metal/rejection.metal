// Distributions by rejection: each element consumes the random bits of a key of its own. Plain MSL.
namespace numpy {

// The uniform numbers of a key, in their order.
template <typename T>
struct UniformNumbers {
  uint2 key;
  uint count = 0;

  METAL_FUNC auto bits() {
    const uint2 words = threefry(key, uint2(0, count++));
    if constexpr (sizeof(T) == 8) {
      return (ulong(words.x) << 32) | words.y;
    } else {
      return words.x;
    }
  }
  METAL_FUNC T open() { return open_unit<T>(bits()); }
  METAL_FUNC T symmetric() { return symmetric_unit<T>(bits()); }
  // G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", 1958. Lanes
  // would wait for each other in methods by rejection.
  METAL_FUNC T normal() {
    const T radius = metal::sqrt(T(-2) * metal::log(open()));
    T pi = T(M_PI_F);
    if constexpr (sizeof(T) == 8) {
      pi = as_type<T>(0x400921FB54442D18ul);
    }
    return radius * metal::cos(pi * symmetric());
  }
};

// The logarithm of a gamma variate: those of small shapes are smaller than all floats. G. Marsaglia,
// W. W. Tsang, "A simple method for generating gamma variables", 2000.
template <typename T>
METAL_FUNC T log_gamma_variate(uint key0, uint key1, long offset, T shape) {
  if (!(shape > T(0)) || shape == INFINITY) {
    return shape == T(0) ? -INFINITY : shape > T(0) ? shape : T(NAN);
  }
  UniformNumbers<T> uniform = {threefry(key0, key1, offset)};
  const bool is_small = shape < T(1);
  const T d = (is_small ? shape + T(1) : shape) - T(1) / T(3), c = T(1) / metal::sqrt(T(9) * d);
  for (;;) {
    const T x = uniform.normal(), root = T(1) + c * x, v = root * root * root;
    if (v <= T(0)) continue;
    const T log_v = metal::log(v);
    if (metal::log(uniform.open()) < T(0.5f) * x * x + d * (T(1) - v + log_v)) {
      const T result = metal::log(d) + log_v;
      return is_small ? result + metal::log(uniform.open()) / shape : result;
    }
  }
}

// An angle about 0. D. J. Best, N. I. Fisher, "Efficient simulation of the von Mises distribution",
// 1979. Large concentrations are those of a normal distribution.
template <typename T>
METAL_FUNC T von_mises(uint key0, uint key1, long offset, T concentration) {
  if (!(concentration >= T(0))) return T(NAN);
  UniformNumbers<T> uniform = {threefry(key0, key1, offset)};
  T pi = T(M_PI_F);
  if constexpr (sizeof(T) == 8) {
    pi = as_type<T>(0x400921FB54442D18ul);
  }
  if (concentration < T(1e-6f)) return pi * uniform.symmetric();
  if (concentration > (sizeof(T) == 8 ? T(1e6f) : T(1e4f))) {
    return uniform.normal() / metal::sqrt(concentration);
  }
  const T r = T(1) + metal::sqrt(T(1) + T(4) * concentration * concentration);
  const T rho = (r - metal::sqrt(r + r)) / (concentration + concentration);
  const T s = concentration < T(1e-4f) ? T(1) / concentration + concentration
                                       : (T(1) + rho * rho) / (rho + rho);
  for (;;) {
    const T z = metal::cos(pi * uniform.open()), cosine = (T(1) + s * z) / (s + z);
    const T y = concentration * (s - cosine), height = uniform.open();
    if (y * (T(2) - y) >= height || metal::log(y / height) + T(1) >= y) {
      const T angle = metal::acos(cosine < T(1) ? cosine : T(1));
      return uniform.symmetric() < T(0) ? -angle : angle;
    }
  }
}

// L. Devroye, "Non-uniform random variate generation", 1986, X.6.1.
template <typename T>
METAL_FUNC long zipf(uint key0, uint key1, long offset, T exponent) {
  if (!(exponent > T(1))) return -1;
  if (exponent >= T(1025)) return 1;
  UniformNumbers<T> uniform = {threefry(key0, key1, offset)};
  const T less = exponent - T(1), b = metal::pow(T(2), less);
  for (;;) {
    const T x = metal::floor(metal::pow(uniform.open(), T(-1) / less)), height = uniform.open();
    if (!(x < T(0x1p62f))) continue;
    const T t = metal::pow(T(1) + T(1) / x, less);
    if (height * x * (t - T(1)) * b <= t * (b - T(1))) return long(x);
  }
}

// What Stirling's formula lacks of the logarithm of a factorial.
template <typename T>
METAL_FUNC T stirling_rest(T count) {
  const T over = T(1) / (count + T(1)), square = over * over;
  return over * (T(1) / T(12) - square * (T(1) / T(360) - square / T(1260)));
}

// W. Hoermann, "The generation of binomial random variates", 1993: BTRS.
template <typename T>
METAL_FUNC T binomial_by_rejection(UniformNumbers<T> uniform, T n, T p) {
  const T q = T(1) - p, spread = metal::sqrt(n * p * q), r = p / q;
  const T b = T(1.15f) + T(2.53f) * spread;
  const T a = T(-0.0873f) + T(0.0248f) * b + T(0.01f) * p, c = n * p + T(0.5f);
  const T sure = T(0.92f) - T(4.2f) / b, alpha = (T(2.83f) + T(5.1f) / b) * spread;
  const T m = metal::floor((n + T(1)) * p);
  for (;;) {
    const T u = T(0.5f) * uniform.symmetric(), height = uniform.open();
    const T edge_distance = T(0.5f) - metal::fabs(u);
    const T k = metal::floor((T(2) * a / edge_distance + b) * u + c);
    if (edge_distance >= T(0.07f) && height <= sure) return k;
    if (k < T(0) || k > n) continue;
    const T density = metal::log(height * alpha / (a / (edge_distance * edge_distance) + b));
    const T bound = (m + T(0.5f)) * metal::log((m + T(1)) / (r * (n - m + T(1)))) +
                    (n + T(1)) * metal::log((n - m + T(1)) / (n - k + T(1))) +
                    (k + T(0.5f)) * metal::log(r * (n - k + T(1)) / (k + T(1))) +
                    stirling_rest(m) + stirling_rest(n - m) - stirling_rest(k) - stirling_rest(n - k);
    if (density <= bound) return k;
  }
}

// Trials up to each success, L. Devroye X.4.3; for probabilities up to 1/2.
template <typename T>
METAL_FUNC T binomial_by_trials(UniformNumbers<T> uniform, T n, T p) {
  const T log_q = numpy::log1p(-p);
  T trials = T(0);
  for (T successes = T(0);; successes += T(1)) {
    trials += metal::ceil(metal::log(uniform.open()) / log_q);
    if (!(trials <= n)) return successes;
  }
}

template <typename T>
METAL_FUNC long binomial(uint key0, uint key1, long offset, T n, T p) {
  if (!(n >= T(0) && p >= T(0) && p <= T(1))) return -1;
  UniformNumbers<T> uniform = {threefry(key0, key1, offset)};
  const T rare = p < T(0.5f) ? p : T(1) - p;
  if (rare == T(0) || n == T(0)) return p < T(0.5f) ? 0 : long(n);
  const T successes = n * rare < T(10) ? binomial_by_trials(uniform, n, rare)
                                       : binomial_by_rejection(uniform, n, rare);
  return long(rare == p ? successes : n - successes);
}

// The logarithm of m! / k! without the terms that cancel in `log_hypergeometric`.
template <typename T>
METAL_FUNC T log_factorials(T m, T k) {
  return (m + T(0.5f)) * numpy::log1p((m - k) / (k + T(1))) + stirling_rest(m) - stirling_rest(k);
}

// The logarithm of the probability of k, compared with that of m: `rare` of the population have a
// property, `others` do not. By Stirling's formula; differences of large logarithms are inaccurate.
template <typename T>
METAL_FUNC T log_hypergeometric(T k, T m, T rare, T others, T sample) {
  const T missing = others - sample;
  const T shift = metal::log((k + T(1)) / (rare - k + T(1)) *
                             ((missing + k + T(1)) / (sample - k + T(1))));
  return log_factorials(m, k) + log_factorials(rare - m, rare - k) +
         log_factorials(sample - m, sample - k) + log_factorials(missing + m, missing + k) +
         (m - k) * shift;
}

// E. Stadlober, "The ratio of uniforms approach for generating discrete random variates", 1990:
// HRUA. For rare <= others and samples of at most half the population.
template <typename T>
METAL_FUNC T hypergeometric_by_rejection(UniformNumbers<T> uniform, T rare, T others, T sample) {
  const T all = rare + others, p = rare / all, center = sample * p + T(0.5f);
  const T variance = (all - sample) / (all - T(1)) * sample * p * (T(1) - p);
  const T deviation = metal::sqrt(variance + T(0.5f));
  const T width = T(1.7155277699214135) * deviation + T(0.8989161620588988);
  const T m = metal::floor((sample + T(1)) * ((rare + T(1)) / (all + T(2))));
  const T limit = metal::min(metal::min(sample, rare) + T(1), metal::floor(center + T(16) * deviation));
  for (;;) {
    const T u = uniform.open(), x = center + width * (uniform.open() - T(0.5f)) / u;
    if (x < T(0) || x >= limit) continue;
    const T k = metal::floor(x), difference = log_hypergeometric(k, m, rare, others, sample);
    if (u * (T(4) - u) - T(3) <= difference) return k;
    if (u * (u - difference) >= T(1)) continue;
    if (T(2) * metal::log(u) <= difference) return k;
  }
}

template <typename T>
METAL_FUNC long hypergeometric(uint key0, uint key1, long offset, T good, T bad, T sample) {
  if (!(good >= T(0) && bad >= T(0) && sample >= T(0) && sample <= good + bad)) return -1;
  UniformNumbers<T> uniform = {threefry(key0, key1, offset)};
  const T drawn = metal::min(sample, good + bad - sample);
  T count = T(0);
  if (drawn < T(10)) {  // one after the other
    for (T taken = T(0); taken < drawn; taken += T(1)) {
      if (uniform.open() * (good + bad - taken) < good - count) count += T(1);
    }
  } else {
    count = hypergeometric_by_rejection(uniform, metal::min(good, bad), metal::max(good, bad), drawn);
    if (good > bad) count = drawn - count;
  }
  return long(drawn < sample ? good - count : count);
}

}  // namespace numpy
