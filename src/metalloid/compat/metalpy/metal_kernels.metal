// The 51 kernels of MetalPy, under their names and with their parameters; the text is our own.
#include <metal_stdlib>
using namespace metal;

// -- one element a thread

#define ONE_OPERAND(name, value)                                                             \
  kernel void name(device const float *a [[buffer(0)]], device float *out [[buffer(1)]],     \
                   constant uint &N [[buffer(2)]], uint id [[thread_position_in_grid]]) {    \
    if (id < N) {                                                                            \
      const float x = a[id];                                                                 \
      out[id] = value;                                                                       \
    }                                                                                        \
  }
#define TWO_OPERANDS(name, value)                                                            \
  kernel void name(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], \
                   device float *out [[buffer(2)]], constant uint &N [[buffer(3)]],          \
                   uint id [[thread_position_in_grid]]) {                                    \
    if (id < N) {                                                                            \
      const float x = a[id], y = b[id];                                                      \
      out[id] = value;                                                                       \
    }                                                                                        \
  }
#define OPERAND_AND_NUMBER(name, value)                                                      \
  kernel void name(device const float *a [[buffer(0)]], device float *out [[buffer(1)]],     \
                   constant float &c [[buffer(2)]], constant uint &N [[buffer(3)]],          \
                   uint id [[thread_position_in_grid]]) {                                    \
    if (id < N) {                                                                            \
      const float x = a[id];                                                                 \
      out[id] = value;                                                                       \
    }                                                                                        \
  }
// The second operand again and again.
#define REPEATED_OPERAND(name, value)                                                        \
  kernel void name(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], \
                   device float *out [[buffer(2)]], constant uint &N [[buffer(3)]],          \
                   constant uint &M [[buffer(4)]], uint id [[thread_position_in_grid]]) {    \
    if (id < N) {                                                                            \
      const float x = a[id], y = b[id % M];                                                  \
      out[id] = value;                                                                       \
    }                                                                                        \
  }

TWO_OPERANDS(add_kernel, x + y)
TWO_OPERANDS(sub_kernel, x - y)
TWO_OPERANDS(multiply_kernel, x * y)
TWO_OPERANDS(division_kernel, x / y)
TWO_OPERANDS(atan2_kernel, atan2(x, y))
ONE_OPERAND(negate_kernel, -x)
ONE_OPERAND(abs_kernel, fabs(x))
ONE_OPERAND(square_kernel, x * x)
ONE_OPERAND(sqrt_kernel, sqrt(x))
ONE_OPERAND(exp_kernel, exp(x))
ONE_OPERAND(log_kernel, log(x))
ONE_OPERAND(sin_kernel, sin(x))
ONE_OPERAND(cos_kernel, cos(x))
ONE_OPERAND(tan_kernel, tan(x))
ONE_OPERAND(asin_kernel, asin(x))
ONE_OPERAND(floor_kernel, floor(x))
ONE_OPERAND(ceil_kernel, ceil(x))
ONE_OPERAND(sign_kernel, sign(x))
ONE_OPERAND(round_kernel, round(x))
OPERAND_AND_NUMBER(pow_kernel, pow(x, c))
REPEATED_OPERAND(broadcast_add_kernel, x + y)
REPEATED_OPERAND(broadcast_multiply_kernel, x * y)

kernel void clip_kernel(device const float *a [[buffer(0)]], constant float &low [[buffer(1)]],
                        constant float &high [[buffer(2)]], device float *out [[buffer(3)]],
                        constant uint &N [[buffer(4)]], uint id [[thread_position_in_grid]]) {
  if (id < N) {
    out[id] = clamp(a[id], low, high);
  }
}

ONE_OPERAND(relu_kernel, fmax(x, 0.0f))
ONE_OPERAND(sigmoid_kernel, 1.0f / (1.0f + exp(-x)))
ONE_OPERAND(tanh_kernel, tanh(x))
ONE_OPERAND(softplus_kernel, log(1.0f + exp(x)))
ONE_OPERAND(swish_kernel, x / (1.0f + exp(-x)))
ONE_OPERAND(gelu_kernel, 0.5f * x * (1.0f + tanh(0.7978845608f * (x + 0.044715f * x * x * x))))
OPERAND_AND_NUMBER(leaky_relu_kernel, x > 0.0f ? x : c * x)

// -- reductions: a number for each threadgroup, and then one of these

constant constexpr uint MAX_THREADS = 256;

#define REDUCTION(name, start, combine)                                                    \
  kernel void name##_reduce_kernel(                                                         \
      device const float *a [[buffer(0)]], device float *partial [[buffer(1)]],             \
      constant uint &N [[buffer(2)]], constant uint &TPT [[buffer(3)]],                     \
      uint local [[thread_position_in_threadgroup]],                                        \
      uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]]) { \
    threadgroup float scratch[MAX_THREADS];                                                \
    float x = start;                                                                        \
    for (uint i = group * TPT + local; i < N; i += groups * TPT) {                          \
      const float y = a[i];                                                                 \
      x = combine;                                                                         \
    }                                                                                       \
    scratch[local] = x;                                                                     \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                        \
    for (uint step = TPT / 2; step > 0; step /= 2) {                                        \
      if (local < step) {                                                                   \
        const float y = scratch[local + step];                                              \
        x = combine;                                                                       \
        scratch[local] = x;                                                                 \
      }                                                                                     \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                      \
    }                                                                                       \
    if (local == 0) {                                                                       \
      partial[group] = x;                                                                   \
    }                                                                                       \
  }                                                                                         \
  kernel void name##_reduce_final_kernel(                                                   \
      device const float *partial [[buffer(0)]], device float *out [[buffer(1)]],           \
      constant uint &N [[buffer(2)]], uint id [[thread_position_in_grid]]) {                \
    if (id == 0) {                                                                          \
      float x = start;                                                                      \
      for (uint i = 0; i < N; ++i) {                                                        \
        const float y = partial[i];                                                         \
        x = combine;                                                                       \
      }                                                                                     \
      out[0] = x;                                                                           \
    }                                                                                       \
  }

REDUCTION(sum, 0.0f, x + y)
REDUCTION(product, 1.0f, x * y)
REDUCTION(max, -INFINITY, fmax(x, y))
REDUCTION(min, INFINITY, fmin(x, y))

// Of equal ones the first that a tree of comparisons meets; NaN is never found.
#define INDEX_OF(name, start, is_better)                                                    \
  kernel void name##_reduce_kernel(                                                         \
      device const float *a [[buffer(0)]], device uint *indices [[buffer(1)]],               \
      device float *values [[buffer(2)]], constant uint &N [[buffer(3)]],                   \
      constant uint &TPT [[buffer(4)]], uint local [[thread_position_in_threadgroup]],      \
      uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]]) { \
    threadgroup float scratch[MAX_THREADS];                                                \
    threadgroup uint scratch_indices[MAX_THREADS];                                          \
    float x = start;                                                                        \
    uint index = 0;                                                                         \
    for (uint i = group * TPT + local; i < N; i += groups * TPT) {                          \
      const float y = a[i];                                                                 \
      if (is_better) {                                                                      \
        x = y;                                                                              \
        index = i;                                                                          \
      }                                                                                     \
    }                                                                                       \
    scratch[local] = x;                                                                     \
    scratch_indices[local] = index;                                                          \
    threadgroup_barrier(mem_flags::mem_threadgroup);                                        \
    for (uint step = TPT / 2; step > 0; step /= 2) {                                        \
      if (local < step) {                                                                   \
        const float y = scratch[local + step];                                              \
        if (is_better) {                                                                    \
          x = scratch[local] = y;                                                           \
          scratch_indices[local] = scratch_indices[local + step];                             \
        }                                                                                   \
      }                                                                                     \
      threadgroup_barrier(mem_flags::mem_threadgroup);                                      \
    }                                                                                       \
    if (local == 0) {                                                                       \
      indices[group] = scratch_indices[0];                                                    \
      values[group] = x;                                                                    \
    }                                                                                       \
  }                                                                                         \
  kernel void name##_reduce_final_kernel(                                                   \
      device const uint *indices [[buffer(0)]], device const float *values [[buffer(1)]],    \
      device uint *index [[buffer(2)]], device float *value [[buffer(3)]],                  \
      constant uint &N [[buffer(4)]], uint id [[thread_position_in_grid]]) {                \
    if (id == 0) {                                                                          \
      float x = values[0];                                                                  \
      uint at = 0;                                                                          \
      for (uint i = 1; i < N; ++i) {                                                        \
        const float y = values[i];                                                          \
        if (is_better) {                                                                    \
          x = y;                                                                            \
          at = i;                                                                           \
        }                                                                                   \
      }                                                                                     \
      index[0] = indices[at];                                                                \
      value[0] = x;                                                                         \
    }                                                                                       \
  }

INDEX_OF(argmax, -INFINITY, y > x)
INDEX_OF(argmin, INFINITY, y < x)

// -- matrices, row by row

kernel void hadamard_mat_kernel(device const float *A [[buffer(0)]],
                                device const float *B [[buffer(1)]],
                                device float *out [[buffer(2)]], constant uint &rows [[buffer(3)]],
                                constant uint &cols [[buffer(4)]],
                                uint id [[thread_position_in_grid]]) {
  if (id < rows * cols) {
    out[id] = A[id] * B[id];
  }
}

kernel void row_sum_kernel(device const float *A [[buffer(0)]], device float *out [[buffer(1)]],
                           constant uint &rows [[buffer(2)]], constant uint &cols [[buffer(3)]],
                           uint id [[thread_position_in_grid]]) {
  if (id < rows) {
    float sum = 0;
    for (uint k = 0; k < cols; ++k) {
      sum += A[id * cols + k];
    }
    out[id] = sum;
  }
}

kernel void col_sum_kernel(device const float *A [[buffer(0)]], device float *out [[buffer(1)]],
                           constant uint &rows [[buffer(2)]], constant uint &cols [[buffer(3)]],
                           uint id [[thread_position_in_grid]]) {
  if (id < cols) {
    float sum = 0;
    for (uint k = 0; k < rows; ++k) {
      sum += A[k * cols + id];
    }
    out[id] = sum;
  }
}

kernel void row_scale_kernel(device const float *A [[buffer(0)]],
                             device const float *s [[buffer(1)]], device float *out [[buffer(2)]],
                             constant uint &rows [[buffer(3)]], constant uint &cols [[buffer(4)]],
                             uint2 id [[thread_position_in_grid]]) {
  if (id.x < cols && id.y < rows) {
    out[id.y * cols + id.x] = A[id.y * cols + id.x] * s[id.y];
  }
}

kernel void col_scale_kernel(device const float *A [[buffer(0)]],
                             device const float *s [[buffer(1)]], device float *out [[buffer(2)]],
                             constant uint &rows [[buffer(3)]], constant uint &cols [[buffer(4)]],
                             uint2 id [[thread_position_in_grid]]) {
  if (id.x < cols && id.y < rows) {
    out[id.y * cols + id.x] = A[id.y * cols + id.x] * s[id.x];
  }
}

kernel void transpose_kernel(device const float *A [[buffer(0)]], device float *out [[buffer(1)]],
                             constant uint &rows [[buffer(2)]], constant uint &cols [[buffer(3)]],
                             uint2 id [[thread_position_in_grid]]) {
  if (id.x < cols && id.y < rows) {
    out[id.x * rows + id.y] = A[id.y * cols + id.x];
  }
}

kernel void matmul_kernel(device const float *A [[buffer(0)]], device const float *B [[buffer(1)]],
                          device float *out [[buffer(2)]], constant uint &M [[buffer(3)]],
                          constant uint &N [[buffer(4)]], constant uint &K [[buffer(5)]],
                          uint2 id [[thread_position_in_grid]]) {
  if (id.x < N && id.y < M) {
    float sum = 0;
    for (uint k = 0; k < K; ++k) {
      sum += A[id.y * K + k] * B[k * N + id.x];
    }
    out[id.y * N + id.x] = sum;
  }
}

// -- parts

kernel void slice_kernel(device const float *a [[buffer(0)]], device float *out [[buffer(1)]],
                         constant uint &start [[buffer(2)]], constant uint &end [[buffer(3)]],
                         uint id [[thread_position_in_grid]]) {
  if (id < end - start) {
    out[id] = a[start + id];
  }
}

kernel void gather_kernel(device const float *source [[buffer(0)]],
                          device const uint *index [[buffer(1)]], device float *out [[buffer(2)]],
                          constant uint &N [[buffer(3)]], uint id [[thread_position_in_grid]]) {
  if (id < N) {
    out[id] = source[index[id]];
  }
}
