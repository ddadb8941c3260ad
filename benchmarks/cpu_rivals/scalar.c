// The kernels of metalloid.bench as scalar loops over their threads: what a C programmer would write
// first, for clang -O3 to vectorise where it can. The arguments are those of the kernels.
typedef unsigned uint;
typedef unsigned char uchar;
typedef struct { float x, y, z, w; } float4;
typedef float vector4 __attribute__((ext_vector_type(4)));

void saxpy(int count, float* restrict y, const float* restrict x, float a) {
  for (int i = 0; i < count; i++) y[i] = a * x[i] + y[i];
}

void exp_of(int count, float* restrict y, const float* restrict x) {
  for (int i = 0; i < count; i++) y[i] = __builtin_expf(x[i]);
}

void log_of(int count, float* restrict y, const float* restrict x) {
  for (int i = 0; i < count; i++) y[i] = __builtin_logf(x[i]);
}

void sin_of(int count, float* restrict y, const float* restrict x) {
  for (int i = 0; i < count; i++) y[i] = __builtin_sinf(x[i]);
}

void pow_of(int count, float* restrict y, const float* restrict x, float exponent) {
  for (int i = 0; i < count; i++) y[i] = __builtin_powf(x[i], exponent);
}

void normalise(int count, float4* restrict y, const float4* restrict x) {
  for (int i = 0; i < count; i++) {
    float4 v = x[i];
    float s = 1 / __builtin_sqrtf(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w);
    y[i] = (float4){v.x * s, v.y * s, v.z * s, v.w * s};
  }
}

// With vectors of four, as the kernel's text has them: clang makes no wider ones of those.
void normalise_as_told(int count, vector4* restrict y, const vector4* restrict x) {
  for (int i = 0; i < count; i++) {
    vector4 v = x[i], squares = v * v;
    y[i] = v * (1 / __builtin_sqrtf(squares.x + squares.y + squares.z + squares.w));
  }
}

void julia(int count, int* restrict iterations, int width, int height, float cx, float cy) {
  for (int j = 0; j < height; j++) {
    for (int i = 0; i < width; i++) {
      float x = (i - 0.5f * width) * (3.0f / width), y = (j - 0.5f * height) * (3.0f / width);
      int n = 0;
      for (; n < 300; n++) {
        float x2 = x * x, y2 = y * y;
        if (x2 + y2 > 4) break;
        y = 2 * x * y + cy;
        x = x2 - y2 + cx;
      }
      iterations[j * width + i] = n;
    }
  }
}

void mandelbrot(int count, int* restrict iterations, int width, int height) {
  for (int j = 0; j < height; j++) {
    for (int i = 0; i < width; i++) {
      float cx = i * (3.0f / width) - 2, cy = j * (2.0f / height) - 1, x = 0, y = 0;
      int n = 0;
      while (n < 256 && x * x + y * y <= 4) {
        float next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        n++;
      }
      iterations[j * width + i] = n;
    }
  }
}

void collatz(int count, int* restrict steps) {
  for (int i = 0; i < count; i++) {
    int n = 0;
    for (uint x = i + 1; x != 1; n++) x = x & 1 ? 3 * x + 1 : x / 2;
    steps[i] = n;
  }
}

void primes(int count, int* restrict sums) {
  for (int i = 0; i < count; i++) {
    int sum = 0;
    for (uint p = 2; p <= (i & 255); p++) {
      int prime = 1;
      for (uint q = 2; q * q <= p; q++) {
        if (p % q == 0) {
          prime = 0;
          break;
        }
      }
      if (!prime) continue;
      sum += p;
    }
    sums[i] = sum;
  }
}

void stencil(int count, float* restrict y, const float* restrict x, int n) {
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < n; i++) {
      int at = j * n + i;
      if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
        y[at] = 0.2f * (x[at] + x[at - 1] + x[at + 1] + x[at - n] + x[at + n]);
      else
        y[at] = x[at];
    }
  }
}

// The kernel's own text, word for word, for threads of a row that a caller chooses, as a thread pool
// would. It promises no more than the kernel does, neither that they are columns of the image nor that
// `y` is not `x`, and clang makes no vectors of it; of other writings of it, clang makes some.
void guarded_stencil_of_threads(float* y, const float* x, uint n, uint j, uint first, uint end) {
  for (uint i = first; i < end; i++) {
    const uint at = j * n + i;
    if (i == 0 || j == 0 || i >= n - 1 || j >= n - 1) {
      if (i < n && j < n) y[at] = x[at];
      continue;
    }
    y[at] = 0.2f * (x[at] + x[at - 1] + x[at + 1] + x[at - n] + x[at + n]);
  }
}

void guarded_stencil(int count, float* y, const float* x, int n) {
  // By a pointer, or clang would see that the threads are columns.
  void (*volatile run)(float*, const float*, uint, uint, uint, uint) = guarded_stencil_of_threads;
  for (int j = 0; j < n; j++) run(y, x, n, j, 0, n);
}

void matmul(int count, float* restrict c, const float* restrict a, const float* restrict b, int n) {
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < n; i++) {
      float sum = 0;
      for (int k = 0; k < n; k++) sum += a[j * n + k] * b[k * n + i];
      c[j * n + i] = sum;
    }
  }
}

// Loops over the threads of a 16 x 16 threadgroup, from barrier to barrier.
void tiled_matmul(int count, float* restrict c, const float* restrict a, const float* restrict b,
                  uint n) {
  for (uint top = 0; top < n; top += 16) {
    for (uint left = 0; left < n; left += 16) {
      float as[16][16], bs[16][16], sums[16][16] = {0};
      for (uint k = 0; k < n; k += 16) {
        for (uint y = 0; y < 16; y++) {
          for (uint x = 0; x < 16; x++) {
            as[y][x] = a[(top + y) * n + k + x];
            bs[y][x] = b[(k + y) * n + left + x];
          }
        }
        for (uint y = 0; y < 16; y++) {
          for (uint x = 0; x < 16; x++) {
            float sum = sums[y][x];
            for (uint j = 0; j < 16; j++) sum += as[y][j] * bs[j][x];
            sums[y][x] = sum;
          }
        }
      }
      for (uint y = 0; y < 16; y++)
        for (uint x = 0; x < 16; x++) c[(top + y) * n + left + x] = sums[y][x];
    }
  }
}

void nbody(int count, float4* restrict acceleration, const float4* restrict bodies, int n) {
  for (int i = 0; i < n; i++) {
    float4 here = bodies[i], sum = {0};
    for (int j = 0; j < n; j++) {
      float x = bodies[j].x - here.x, y = bodies[j].y - here.y, z = bodies[j].z - here.z;
      float inverse = 1 / __builtin_sqrtf(x * x + y * y + z * z + 1e-3f);
      float pull = bodies[j].w * inverse * inverse * inverse;
      sum.x += x * pull;
      sum.y += y * pull;
      sum.z += z * pull;
    }
    acceleration[i] = sum;
  }
}

void tree_reduction(int count, float* restrict sums, const float* restrict x) {
  for (int group = 0; group < count / 256; group++) {
    float parts[256];
    __builtin_memcpy(parts, x + group * 256, sizeof parts);
    for (int s = 128; s > 0; s /= 2)
      for (int t = 0; t < s; t++) parts[t] += parts[t + s];
    sums[group] = parts[0];
  }
}

void histogram(int count, uint* restrict counts, const uchar* restrict x, uint share) {
  long bytes = (long)(count / 256) * share;
  for (long i = 0; i < bytes; i++) counts[x[i]]++;
}

void prefix_sum(int count, float* restrict y, const float* restrict x, uint n) {
  for (int row = 0; row < count / 256; row++) {
    float sum = 0;
    for (uint i = 0; i < n; i++) y[row * n + i] = sum += x[row * n + i];
  }
}

void softmax(int count, float* restrict y, const float* restrict x, uint n) {
  for (int row = 0; row < count / 256; row++) {
    const float* from = x + row * n;
    float largest = -__builtin_inff(), sum = 0;
    for (uint i = 0; i < n; i++) largest = from[i] > largest ? from[i] : largest;
    for (uint i = 0; i < n; i++) sum += __builtin_expf(from[i] - largest);
    for (uint i = 0; i < n; i++) y[row * n + i] = __builtin_expf(from[i] - largest) / sum;
  }
}
