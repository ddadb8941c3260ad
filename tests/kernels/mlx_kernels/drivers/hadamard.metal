#include "mlx/backend/metal/kernels/utils.h"

// The header leaves the transform of the odd factor to its includer. This one is the Hadamard
// matrix of order 12 by Paley: bordered quadratic residues modulo 11, signs turned to be skew.
METAL_FUNC void hadamard_radix_m(thread float* x) {
  const uint residues = 0x23A; // bits 1, 3, 4, 5, 9
  float y[12];
  for (int i = 0; i < 12; ++i) {
    y[i] = 0;
    for (int j = 0; j < 12; ++j) {
      bool plus = i == 0 || i == j || (j > 0 && ((residues >> ((j + 11 - i) % 11)) & 1));
      y[i] += plus ? x[j] : -x[j];
    }
  }
  for (int i = 0; i < 12; ++i) {
    x[i] = y[i];
  }
}

#include "mlx/backend/metal/kernels/hadamard.h"

instantiate_kernel("hadamard_n_float_64", hadamard_n, float, 64, 16, 2)
instantiate_kernel("hadamard_n_half_1024", hadamard_n, half, 1024, 16, 4)
instantiate_kernel("hadamard_n_float_32_stride", hadamard_n, float, 32, 8, 1, 12)
instantiate_kernel("hadamard_m_float", hadamard_m, float, 32, 12, 2)
