// The kernels of metalloid.bench as a skilled person would write them with vector types: sixteen or
// more lanes at a time, masks where lanes part. The arguments are those of the kernels; widths and
// heights are multiples of 32.

typedef unsigned uint;
typedef unsigned char uchar;
typedef float v16 __attribute__((ext_vector_type(16)));
typedef float v32 __attribute__((ext_vector_type(32)));
typedef float v64 __attribute__((ext_vector_type(64)));
typedef int i16 __attribute__((ext_vector_type(16)));
typedef uint u16 __attribute__((ext_vector_type(16)));
typedef double d16 __attribute__((ext_vector_type(16)));
typedef v16 __attribute__((aligned(4))) v16u;  // wherever a float may lie
typedef v64 __attribute__((aligned(4))) v64u;
typedef i16 __attribute__((aligned(4))) i16u;
typedef union { v16 f; i16 i; u16 u; } bits;

#define INLINE static inline __attribute__((always_inline))
#define LOAD(p) (*(const v16u*)(p))
#define STORE(p, v) (*(v16u*)(p) = (v))
#define CHOOSE(mask, yes, no) ((mask) ? (yes) : (no))
#define FLOATS(v) __builtin_convertvector(v, v16)
#define FMA __builtin_elementwise_fma
static const i16 LANE = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// exp by 2^n * p(r), r in [-ln 2 / 2, ln 2 / 2]; 1 ULP or so, for arguments that do not overflow.
INLINE v16 exp16(v16 x) {
  x = __builtin_elementwise_max(x, (v16)-87.3f);
  v16 n = __builtin_elementwise_roundeven(x * 1.44269504f);
  v16 r = FMA(n, (v16)-0.693145752f, x);
  r = FMA(n, (v16)-1.42860677e-6f, r);
  v16 p = 1.38150010e-3f;
  p = FMA(p, r, (v16)8.37312452e-3f);
  p = FMA(p, r, (v16)4.16695364e-2f);
  p = FMA(p, r, (v16)1.66664720e-1f);
  p = FMA(p, r, (v16)4.99999851e-1f);
  p = FMA(p, r, (v16)1.0f);
  p = FMA(p, r, (v16)1.0f);
  bits scale = {.i = (__builtin_convertvector(n, i16) + 127) << 23};
  return p * scale.f;
}

void saxpy(int count, float* y, const float* x, float a) {
  int i = 0;
  for (; i + 64 <= count; i += 64) *(v64u*)(y + i) += a * *(const v64u*)(x + i);
  for (; i < count; i++) y[i] += a * x[i];
}

void exp_of(int count, float* y, const float* x) {
  int i = 0;
  for (; i + 16 <= count; i += 16) STORE(y + i, exp16(LOAD(x + i)));
  for (; i < count; i++) y[i] = __builtin_expf(x[i]);
}

#define EACH_FOURTH(v, at) __builtin_shufflevector(v, v, at, at + 4, at + 8, at + 12, at + 16, \
    at + 20, at + 24, at + 28, at + 32, at + 36, at + 40, at + 44, at + 48, at + 52, at + 56, at + 60)
#define PAIR(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, \
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31)
#define TURN(i) i, i + 16, i + 32, i + 48
#define INTERLEAVED(a, b) __builtin_shufflevector(a, b, TURN(0), TURN(1), TURN(2), TURN(3), TURN(4), \
    TURN(5), TURN(6), TURN(7), TURN(8), TURN(9), TURN(10), TURN(11), TURN(12), TURN(13), TURN(14), \
    TURN(15))

void normalise(int count, float* y, const float* x) {
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    v64 q = *(const v64u*)(x + 4 * i);
    v16 a = EACH_FOURTH(q, 0), b = EACH_FOURTH(q, 1), c = EACH_FOURTH(q, 2), d = EACH_FOURTH(q, 3);
    v16 s = 1 / __builtin_elementwise_sqrt(a * a + b * b + c * c + d * d);
    // Each of x's vectors holds four float4s: the factors are spread instead of weaving the products.
    v32 ss = PAIR(s, s);
    v64 spread = __builtin_shufflevector(ss, ss, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4,
        4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8, 9, 9, 9, 9, 10, 10, 10, 10, 11, 11, 11,
        11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15);
    *(v64u*)(y + 4 * i) = q * spread;
  }
  for (; i < count; i++) {
    const float* v = x + 4 * i;
    float s = 1 / __builtin_sqrtf(v[0] * v[0] + v[1] * v[1] + v[2] * v[2] + v[3] * v[3]);
    for (int k = 0; k < 4; k++) y[4 * i + k] = v[k] * s;
  }
}

void julia(int count, int* iterations, int width, int height, float cx, float cy) {
  for (int j = 0; j < height; j++) {
    for (int i = 0; i < width; i += 32) {  // two chains at a time hide the latency
      v16 x[2], y[2];
      i16 n[2] = {0, 0}, live[2] = {-1, -1};
      for (int k = 0; k < 2; k++) {
        x[k] = (FLOATS(LANE + (i + 16 * k)) - 0.5f * width) * (3.0f / width);
        y[k] = (j - 0.5f * height) * (3.0f / width);
      }
      for (int round = 0; round < 300; round++) {
        for (int k = 0; k < 2; k++) {
          v16 x2 = x[k] * x[k], y2 = y[k] * y[k];
          live[k] &= x2 + y2 <= 4;
          n[k] -= live[k];
          y[k] = 2 * x[k] * y[k] + cy;
          x[k] = x2 - y2 + cx;
        }
        if (!__builtin_reduce_or(live[0] | live[1])) break;
      }
      for (int k = 0; k < 2; k++) *(i16u*)(iterations + j * width + i + 16 * k) = n[k];
    }
  }
}

void mandelbrot(int count, int* iterations, int width, int height) {
  for (int j = 0; j < height; j++) {
    for (int i = 0; i < width; i += 32) {
      v16 cx[2], x[2] = {0, 0}, y[2] = {0, 0};
      const v16 cy = j * (2.0f / height) - 1;
      i16 n[2] = {0, 0}, live[2] = {-1, -1};
      for (int k = 0; k < 2; k++) cx[k] = FLOATS(LANE + (i + 16 * k)) * (3.0f / width) - 2;
      for (int round = 0; round < 256; round++) {
        for (int k = 0; k < 2; k++) {
          v16 x2 = x[k] * x[k], y2 = y[k] * y[k];
          live[k] &= x2 + y2 <= 4;
          n[k] -= live[k];
          y[k] = 2 * x[k] * y[k] + cy;
          x[k] = x2 - y2 + cx[k];
        }
        if (!__builtin_reduce_or(live[0] | live[1])) break;
      }
      for (int k = 0; k < 2; k++) *(i16u*)(iterations + j * width + i + 16 * k) = n[k];
    }
  }
}

void collatz(int count, int* steps) {
  for (int i = 0; i < count; i += 32) {
    u16 x[2];
    i16 n[2] = {0, 0}, live[2];
    for (int k = 0; k < 2; k++) x[k] = __builtin_convertvector(LANE + (i + 16 * k + 1), u16);
    for (;;) {
      for (int k = 0; k < 2; k++) live[k] = x[k] != 1;
      if (!__builtin_reduce_or(live[0] | live[1])) break;
      for (int k = 0; k < 2; k++) {
        n[k] -= live[k];
        u16 next = CHOOSE((x[k] & 1) != 0, 3 * x[k] + 1, x[k] >> 1);
        x[k] = CHOOSE(live[k], next, x[k]);
      }
    }
    for (int k = 0; k < 2; k++) *(i16u*)(steps + i + 16 * k) = n[k];
  }
}

// Whether p is prime is the same for all lanes; what differs is how far they count.
void primes(int count, int* sums) {
  for (int i = 0; i < count; i += 32) {
    i16 last[2], sum[2] = {0, 0};
    for (int k = 0; k < 2; k++) last[k] = (LANE + (i + 16 * k)) & 255;
    const int max_last = __builtin_reduce_max(__builtin_elementwise_max(last[0], last[1]));
    for (int p = 2; p <= max_last; p++) {
      int prime = 1;
      for (uint q = 2; q * q <= (uint)p; q++) {
        if ((uint)p % q == 0) {
          prime = 0;
          break;
        }
      }
      if (!prime) continue;
      for (int k = 0; k < 2; k++) sum[k] += CHOOSE(p <= last[k], (i16)p, (i16)0);
    }
    for (int k = 0; k < 2; k++) *(i16u*)(sums + i + 16 * k) = sum[k];
  }
}

void stencil(int count, float* y, const float* x, int n) {
  for (int j = 0; j < n; j++) {
    const float* from = x + (long)j * n;
    float* to = y + (long)j * n;
    if (j == 0 || j == n - 1) {
      __builtin_memcpy(to, from, 4ul * n);
      continue;
    }
    int i = 1;
    to[0] = from[0];
    for (; i + 16 <= n - 1; i += 16)
      STORE(to + i, 0.2f * (LOAD(from + i) + LOAD(from + i - 1) + LOAD(from + i + 1) +
                            LOAD(from + i - n) + LOAD(from + i + n)));
    for (; i < n - 1; i++)
      to[i] = 0.2f * (from[i] + from[i - 1] + from[i + 1] + from[i - n] + from[i + n]);
    to[n - 1] = from[n - 1];
  }
}

void guarded_stencil(int count, float* y, const float* x, int n) { stencil(count, y, x, n); }

// Eight rows of 32 columns at a time: sixteen sums, which share what is loaded of b.
void matmul(int count, float* c, const float* a, const float* b, int n) {
  for (int i = 0; i < n; i += 32) {
    for (int j = 0; j < n; j += 8) {
      v16 left[8] = {0}, right[8] = {0};
      for (int k = 0; k < n; k++) {
        v16 first = LOAD(b + k * n + i), second = LOAD(b + k * n + i + 16);
        for (int row = 0; row < 8; row++) {
          v16 factor = a[(j + row) * n + k];
          left[row] += factor * first;
          right[row] += factor * second;
        }
      }
      for (int row = 0; row < 8; row++) {
        STORE(c + (j + row) * n + i, left[row]);
        STORE(c + (j + row) * n + i + 16, right[row]);
      }
    }
  }
}

// A row of 32 columns at a time, as the kernel has one thread per element.
void matmul_as_told(int count, float* c, const float* a, const float* b, int n) {
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < n; i += 32) {
      v16 left = 0, right = 0;
      for (int k = 0; k < n; k++) {
        v16 factor = a[j * n + k];
        left += factor * LOAD(b + k * n + i);
        right += factor * LOAD(b + k * n + i + 16);
      }
      STORE(c + j * n + i, left);
      STORE(c + j * n + i + 16, right);
    }
  }
}

// The kernel's own tiles and barriers, the regions between them as loops over rows of threads.
void tiled_matmul(int count, float* c, const float* a, const float* b, uint n) {
  for (uint top = 0; top < n; top += 16) {
    for (uint left = 0; left < n; left += 16) {
      float as[16][16] __attribute__((aligned(64)));
      v16 bs[16], sums[16] = {0};
      for (uint k = 0; k < n; k += 16) {
        for (uint y = 0; y < 16; y++) {
          *(v16*)as[y] = LOAD(a + (top + y) * n + k);
          bs[y] = LOAD(b + (k + y) * n + left);
        }
        __asm__ volatile("" ::: "memory");
        for (uint y = 0; y < 16; y++) {
          v16 sum = sums[y];
          for (uint j = 0; j < 16; j++) sum += as[y][j] * bs[j];
          sums[y] = sum;
        }
        __asm__ volatile("" ::: "memory");
      }
      for (uint y = 0; y < 16; y++) STORE(c + (top + y) * n + left, sums[y]);
    }
  }
}

void nbody(int count, float* acceleration, const float* bodies, int n) {
  for (int i = 0; i < n; i += 16) {
    v64 here = *(const v64u*)(bodies + 4 * i);
    v16 hx = EACH_FOURTH(here, 0), hy = EACH_FOURTH(here, 1), hz = EACH_FOURTH(here, 2);
    v16 sx = 0, sy = 0, sz = 0, zero = 0;
    for (int j = 0; j < n; j++) {
      v16 x = bodies[4 * j] - hx, y = bodies[4 * j + 1] - hy, z = bodies[4 * j + 2] - hz;
      v16 inverse = 1 / __builtin_elementwise_sqrt(x * x + y * y + z * z + 1e-3f);
      v16 pull = bodies[4 * j + 3] * inverse * inverse * inverse;
      sx += x * pull;
      sy += y * pull;
      sz += z * pull;
    }
    v32 xy = PAIR(sx, sy), zw = PAIR(sz, zero);
    *(v64u*)(acceleration + 4 * i) = INTERLEAVED(xy, zw);
  }
}

// The same tree of additions, a row of sixteen per step.
void tree_reduction(int count, float* sums, const float* x) {
  for (int group = 0; group < count / 256; group++) {
    const float* from = x + group * 256;
    v16 parts[16];
    for (int k = 0; k < 16; k++) parts[k] = LOAD(from + 16 * k);
    for (int s = 8; s > 0; s /= 2)
      for (int k = 0; k < s; k++) parts[k] += parts[k + s];
    v16 p = parts[0];
    __attribute__((ext_vector_type(8))) float p8 = p.lo + p.hi;
    __attribute__((ext_vector_type(4))) float p4 = p8.lo + p8.hi;
    sums[group] = (p4.x + p4.z) + (p4.y + p4.w);
  }
}

// Four counters per byte: neighbours that are equal do not wait for each other.
void histogram(int count, uint* counts, const uchar* x, uint share) {
  long bytes = (long)(count / 256) * share;
  uint own[4][256] = {0};
  for (long i = 0; i < bytes; i += 8) {
    unsigned long eight = *(const unsigned long*)(x + i);
    for (int k = 0; k < 8; k++) own[k & 3][(eight >> (8 * k)) & 255]++;
  }
  for (int k = 0; k < 256; k++) counts[k] += own[0][k] + own[1][k] + own[2][k] + own[3][k];
}

#define SHIFTED(v, by) __builtin_shufflevector((v16)0, v, 16 - by, 17 - by, 18 - by, 19 - by, \
    20 - by, 21 - by, 22 - by, 23 - by, 24 - by, 25 - by, 26 - by, 27 - by, 28 - by, 29 - by, \
    30 - by, 31 - by)

void prefix_sum(int count, float* y, const float* x, uint n) {
  for (int row = 0; row < count / 256; row++) {
    v16 before = 0;
    for (uint i = 0; i < n; i += 16) {
      v16 v = LOAD(x + row * n + i);
      v += SHIFTED(v, 1);
      v += SHIFTED(v, 2);
      v += SHIFTED(v, 4);
      v += SHIFTED(v, 8);
      STORE(y + row * n + i, v + before);
      before += v[15];
    }
  }
}

// Each exponential once: kept in y.
void softmax(int count, float* y, const float* x, uint n) {
  for (int row = 0; row < count / 256; row++) {
    const float* from = x + row * n;
    float* to = y + row * n;
    v16 largest = -__builtin_inff(), sum = 0;
    for (uint i = 0; i < n; i += 16) largest = __builtin_elementwise_max(largest, LOAD(from + i));
    const float top = __builtin_reduce_max(largest);
    for (uint i = 0; i < n; i += 16) {
      v16 e = exp16(LOAD(from + i) - top);
      sum += e;
      STORE(to + i, e);
    }
    float all = 0;
    for (int k = 0; k < 16; k++) all += sum[k];
    const float scale = 1 / all;
    for (uint i = 0; i < n; i += 16) STORE(to + i, LOAD(to + i) * scale);
  }
}

// The kernel's own steps: each exponential twice, and y written once.
void softmax_as_told(int count, float* y, const float* x, uint n) {
  for (int row = 0; row < count / 256; row++) {
    const float* from = x + row * n;
    float* to = y + row * n;
    v16 largest = -__builtin_inff(), sum = 0;
    for (uint i = 0; i < n; i += 16) largest = __builtin_elementwise_max(largest, LOAD(from + i));
    const float top = __builtin_reduce_max(largest);
    for (uint i = 0; i < n; i += 16) sum += exp16(LOAD(from + i) - top);
    float all = 0;
    for (int k = 0; k < 16; k++) all += sum[k];
    const float scale = 1 / all;
    for (uint i = 0; i < n; i += 16) STORE(to + i, exp16(LOAD(from + i) - top) * scale);
  }
}
