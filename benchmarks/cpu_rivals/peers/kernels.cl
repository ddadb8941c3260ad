// The kernels in OpenCL C.
kernel void julia(global int* rounds, int width, int height, float2 c) {
  int i = get_global_id(0), j = get_global_id(1);
  float x = (i - 0.5f * width) * (3.0f / width), y = (j - 0.5f * height) * (3.0f / width);
  int n = 0;
  for (; n < 300; n++) {
    float x2 = x * x, y2 = y * y;
    if (x2 + y2 > 4) break;
    y = 2 * x * y + c.y;
    x = x2 - y2 + c.x;
  }
  rounds[j * width + i] = n;
}

kernel void mandelbrot(global int* rounds, int width, int height) {
  int i = get_global_id(0), j = get_global_id(1);
  float cx = i * (3.0f / width) - 2, cy = j * (2.0f / height) - 1, x = 0, y = 0;
  int n = 0;
  while (n < 256 && x * x + y * y <= 4) {
    float next = x * x - y * y + cx;
    y = 2 * x * y + cy;
    x = next;
    n++;
  }
  rounds[j * width + i] = n;
}

kernel void nbody(global float4* acceleration, global const float4* bodies, int n) {
  int i = get_global_id(0);
  float3 here = bodies[i].xyz, sum = 0;
  for (int j = 0; j < n; j++) {
    float3 d = bodies[j].xyz - here;
    float inverse = 1 / sqrt(dot(d, d) + 1e-3f);
    sum += d * (bodies[j].w * inverse * inverse * inverse);
  }
  acceleration[i] = (float4)(sum, 0);
}

kernel void matmul(global float* c, global const float* a, global const float* b, int n) {
  int i = get_global_id(0), j = get_global_id(1);
  float sum = 0;
  for (int k = 0; k < n; k++) sum += a[j * n + k] * b[k * n + i];
  c[j * n + i] = sum;
}

kernel void stencil(global float* y, global const float* x, int n) {
  int i = get_global_id(0), j = get_global_id(1), at = j * n + i;
  if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
    y[at] = 0.2f * (x[at] + x[at - 1] + x[at + 1] + x[at - n] + x[at + n]);
  else
    y[at] = x[at];
}

kernel void histogram(global uint* counts, global const uchar* x, int share) {
  local uint own[256];
  int t = get_local_id(0), group = get_group_id(0);
  own[t] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = t; i < share; i += 256) atomic_inc(&own[x[group * share + i]]);
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&counts[t], own[t]);
}

// A block of 256 after the other, each by doubling steps.
kernel void prefix_sum(global float* y, global const float* x, int n) {
  local float parts[256];
  int t = get_local_id(0), row = get_group_id(0);
  float before = 0;
  for (int block = 0; block < n; block += 256) {
    parts[t] = x[row * n + block + t];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 1; step < 256; step *= 2) {
      float left = t >= step ? parts[t - step] : 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      parts[t] += left;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    y[row * n + block + t] = before + parts[t];
    before += parts[255];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

kernel void softmax(global float* y, global const float* x, int n) {
  local float parts[256];
  int t = get_local_id(0), row = get_group_id(0);
  float own = -INFINITY;
  for (int i = t; i < n; i += 256) own = fmax(own, x[row * n + i]);
  parts[t] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) parts[t] = fmax(parts[t], parts[t + step]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float most = parts[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  own = 0;
  for (int i = t; i < n; i += 256) own += exp(x[row * n + i] - most);
  parts[t] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 128; step > 0; step /= 2) {
    if (t < step) parts[t] += parts[t + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float sum = parts[0];
  for (int i = t; i < n; i += 256) y[row * n + i] = exp(x[row * n + i] - most) / sum;
}
