/* One row times a q4_0 matrix in ggml, on one thread, in time of the processor: see
   ../quantized_products.py. The matrix is repacked, as llama.cpp does when it loads a model.

   Build ggml with -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=ON, then
       cc -O2 ggml_product.c -I GGML/include -L BUILD/src -lggml -lggml-cpu -lggml-base \
           -Wl,-rpath,BUILD/src -o ggml_product
       ./ggml_product 131072 2048
*/
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

typedef ggml_backend_buffer_type_t *(*extra_buffers)(ggml_backend_dev_t);

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

int main(int count, char **arguments) {
  if (count != 3) {
    return 1;
  }
  const long rows = atol(arguments[1]), columns = atol(arguments[2]);
  ggml_backend_reg_t registry = ggml_backend_cpu_reg();
  extra_buffers extra = (extra_buffers)ggml_backend_reg_get_proc_address(
      registry, "ggml_backend_dev_get_extra_bufts");
  ggml_backend_buffer_type_t *types = extra ? extra(ggml_backend_reg_dev_get(registry, 0)) : NULL;
  ggml_backend_t backend = ggml_backend_cpu_init();
  ggml_backend_cpu_set_n_threads(backend, 1);

  struct ggml_init_params size = {1 << 20, NULL, true};
  struct ggml_context *weights = ggml_init(size), *others = ggml_init(size);
  struct ggml_tensor *matrix = ggml_new_tensor_2d(weights, GGML_TYPE_Q4_0, columns, rows);
  ggml_backend_alloc_ctx_tensors_from_buft(
      weights, types && types[0] ? types[0] : ggml_backend_cpu_buffer_type());
  const size_t nbytes = (size_t)rows * (columns / 32) * 18;
  unsigned char *data = malloc(nbytes);
  for (size_t i = 0; i < nbytes; i++) {
    data[i] = rand() & 0x3b;
  }
  ggml_backend_tensor_set(matrix, data, 0, nbytes);

  struct ggml_tensor *row = ggml_new_tensor_1d(others, GGML_TYPE_F32, columns);
  struct ggml_cgraph *graph = ggml_new_graph(others);
  ggml_build_forward_expand(graph, ggml_mul_mat(others, matrix, row));
  ggml_backend_alloc_ctx_tensors(others, backend);
  float *values = malloc(columns * sizeof(float));
  for (long i = 0; i < columns; i++) {
    values[i] = (float)rand() / RAND_MAX - 0.5f;
  }
  ggml_backend_tensor_set(row, values, 0, columns * sizeof(float));

  double least = 1e9;
  for (int i = 0; i < 40; i++) {
    const double start = seconds();
    ggml_backend_graph_compute(backend, graph);
    const double taken = seconds() - start;
    least = taken < least ? taken : least;
  }
  printf("q4_0 %ld x %ld: %.2f ms, %.1f GB/s\n", rows, columns, least * 1e3, nbytes / least / 1e9);
  return 0;
}
