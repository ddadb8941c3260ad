// Linear systems of a few equations, each solved by one thread: Gaussian elimination with partial
// pivoting, in registers. Rows are exchanged by selections, as indices of registers are constants.
namespace numpy {

template <typename T>
METAL_FUNC void exchange_if(bool condition, thread T &a, thread T &b) {
  const T first = condition ? b : a;
  b = condition ? a : b;
  a = first;
}

template <uint N, uint M, typename T>
struct SmallSystem {
  T a[N][N], b[N][M];
  bool is_odd = false, is_singular = false;

  METAL_FUNC SmallSystem(device const T *from) {
    #pragma clang loop unroll(full)
    for (uint k = 0; k < N * N; ++k) {
      a[k / N][k % N] = from[k];
    }
  }

  METAL_FUNC void eliminate() {
    #pragma clang loop unroll(full)
    for (uint k = 0; k < N; ++k) {
      #pragma clang loop unroll(full)
      for (uint r = k + 1; r < N; ++r) {
        const T size = a[k][k] < T(0) ? -a[k][k] : a[k][k], other = a[r][k] < T(0) ? -a[r][k] : a[r][k];
        const bool is_larger = !(other <= size);  // or NaN
        is_odd = is_odd != is_larger;
        #pragma clang loop unroll(full)
        for (uint c = k; c < N; ++c) {
          exchange_if(is_larger, a[k][c], a[r][c]);
        }
        #pragma clang loop unroll(full)
        for (uint c = 0; c < M; ++c) {
          exchange_if(is_larger, b[k][c], b[r][c]);
        }
      }
      is_singular = is_singular || a[k][k] == T(0);
      #pragma clang loop unroll(full)
      for (uint r = k + 1; r < N; ++r) {
        const T factor = a[k][k] == T(0) ? T(0) : a[r][k] / a[k][k];
        #pragma clang loop unroll(full)
        for (uint c = k + 1; c < N; ++c) {
          a[r][c] -= factor * a[k][c];
        }
        #pragma clang loop unroll(full)
        for (uint c = 0; c < M; ++c) {
          b[r][c] -= factor * b[k][c];
        }
      }
    }
  }

  METAL_FUNC T determinant() const {
    T product = is_odd ? T(-1) : T(1);
    #pragma clang loop unroll(full)
    for (uint k = 0; k < N; ++k) {
      product *= a[k][k];
    }
    return product;
  }

  // NaN for singular matrices.
  METAL_FUNC void write_solution(device T *to) {
    #pragma clang loop unroll(full)
    for (uint k = N; k-- > 0;) {
      #pragma clang loop unroll(full)
      for (uint c = 0; c < M; ++c) {
        #pragma clang loop unroll(full)
        for (uint j = k + 1; j < N; ++j) {
          b[k][c] -= a[k][j] * b[j][c];
        }
        b[k][c] /= a[k][k];
      }
    }
    #pragma clang loop unroll(full)
    for (uint k = 0; k < N * M; ++k) {
      to[k] = is_singular ? T(NAN) : b[k / M][k % M];
    }
  }
};

template <uint N, typename T>
METAL_FUNC T small_determinant(device const T *matrix) {
  SmallSystem<N, 1, T> system(matrix);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < N; ++k) {
    system.b[k][0] = T(0);
  }
  system.eliminate();
  return system.determinant();
}

template <uint N, uint M, typename T>
METAL_FUNC void solve_small(device const T *matrix, device const T *right, device T *to) {
  SmallSystem<N, M, T> system(matrix);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < N * M; ++k) {
    system.b[k / M][k % M] = right[k];
  }
  system.eliminate();
  system.write_solution(to);
}

template <uint N, typename T>
METAL_FUNC void invert_small(device const T *matrix, device T *to) {
  SmallSystem<N, N, T> system(matrix);
  #pragma clang loop unroll(full)
  for (uint k = 0; k < N * N; ++k) {
    system.b[k / N][k % N] = k / N == k % N ? T(1) : T(0);
  }
  system.eliminate();
  system.write_solution(to);
}

}  // namespace numpy
