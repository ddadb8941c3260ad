// The kernels of kernels.metal in CUDA C++, line by line, for benchmarks/nvidia.py.
extern "C" {

__global__ void saxpy(float* y, const float* x, const float a, const unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void transpose(float* y, const float* x, const unsigned n) {
  __shared__ float tile[32][33];
  unsigned column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (unsigned k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = x[(row + k) * n + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
  for (unsigned k = 0; k < 32; k += 8) y[(row + k) * n + column] = tile[threadIdx.x][threadIdx.y + k];
}

__global__ void julia(int* rounds, const int width, const int height, const float2 c) {
  unsigned px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= width || py >= height) return;
  float x = (px - 0.5f * width) * (3.0f / width), y = (py - 0.5f * height) * (3.0f / width);
  int n = 0;
  for (; n < 300; n++) {
    float x2 = x * x, y2 = y * y;
    if (x2 + y2 > 4) break;
    y = 2 * x * y + c.y;
    x = x2 - y2 + c.x;
  }
  rounds[py * width + px] = n;
}

__global__ void stencil(float* y, const float* x, const int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n) return;
  int at = j * n + i;
  if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
    y[at] = 0.2f * (x[at] + x[at - 1] + x[at + 1] + x[at - n] + x[at + n]);
  else
    y[at] = x[at];
}

__global__ void matmul(float* c, const float* a, const float* b, const int n) {
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  float sum = 0;
  for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
  c[y * n + x] = sum;
}

__global__ void tiled_matmul(float* c, const float* a, const float* b, const unsigned n) {
  __shared__ float left[16][16], right[16][16];
  unsigned tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
  float sum = 0;
  for (unsigned k = 0; k < n; k += 16) {
    left[ty][tx] = a[y * n + k + tx];
    right[ty][tx] = b[(k + ty) * n + x];
    __syncthreads();
    for (unsigned j = 0; j < 16; j++) sum += left[ty][j] * right[j][tx];
    __syncthreads();
  }
  c[y * n + x] = sum;
}

__global__ void nbody(float4* acceleration, const float4* bodies, const int n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 here = bodies[i];
  float sx = 0, sy = 0, sz = 0;
  for (int j = 0; j < n; j++) {
    float4 other = bodies[j];
    float dx = other.x - here.x, dy = other.y - here.y, dz = other.z - here.z;
    float inverse = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
    float pull = other.w * inverse * inverse * inverse;
    sx += dx * pull, sy += dy * pull, sz += dz * pull;
  }
  acceleration[i] = make_float4(sx, sy, sz, 0);
}

__global__ void tree_reduction(float* sums, const float* x) {
  __shared__ float parts[256];
  unsigned t = threadIdx.x;
  parts[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  for (unsigned s = 128; s > 0; s /= 2) {
    if (t < s) parts[t] += parts[t + s];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = parts[0];
}

__global__ void histogram(unsigned* counts, const unsigned char* x, const unsigned share) {
  __shared__ unsigned own[256];
  unsigned t = threadIdx.x;
  own[t] = 0;
  __syncthreads();
  for (unsigned i = t; i < share; i += 256) atomicAdd(&own[x[blockIdx.x * share + i]], 1);
  __syncthreads();
  atomicAdd(&counts[t], own[t]);
}

__global__ void prefix_sum(float* y, const float* x, const unsigned n) {
  __shared__ float parts[8];
  unsigned t = threadIdx.x, row = blockIdx.x, lane = t % 32, warp = t / 32;
  float before = 0;
  for (unsigned i = t; i < n; i += 256) {
    float own = x[row * n + i];
    for (int d = 1; d < 32; d *= 2) {
      float other = __shfl_up_sync(0xffffffff, own, d);
      if (lane >= d) own += other;
    }
    if (lane == 31) parts[warp] = own;
    __syncthreads();
    float left = before;
    for (unsigned k = 0; k < 8; k++) {
      if (k < warp) left += parts[k];
      before += parts[k];
    }
    y[row * n + i] = left + own;
    __syncthreads();
  }
}
}
