/* Times of tokens of a model in llama.cpp, on all processors: see ../language_models.py.

   In a checkout of llama.cpp:
       cmake -B build -DGGML_NATIVE=ON -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF \
           -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF
       cmake --build build --target llama
       cc -O2 llama_tokens.c -I include -I ggml/include -L build/bin -lllama -lggml -lggml-base \
           -Wl,-rpath,$PWD/build/bin -o llama_tokens
*/
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "llama.h"

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void quiet(enum ggml_log_level level, const char *text, void *unused) {
  (void)unused;
  if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static llama_token best(const float *scores, int count) {
  int index = 0;
  for (int i = 1; i < count; i++)
    if (scores[i] > scores[index]) index = i;
  return index;
}

int main(int count, char **arguments) {
  if (count != 3) return 1;
  llama_log_set(quiet, NULL);
  llama_backend_init();
  struct llama_model *model =
      llama_model_load_from_file(arguments[1], llama_model_default_params());
  if (!model) return 1;
  struct llama_context_params options = llama_context_default_params();
  options.n_ctx = 4096;
  options.n_threads = options.n_threads_batch = (int)sysconf(_SC_NPROCESSORS_ONLN);
  struct llama_context *context = llama_init_from_model(model, options);
  if (!context) return 1;
  const int words = llama_vocab_n_tokens(llama_model_get_vocab(model));

  llama_token prompt[] = {1, 5, 9, 14, 3, 77, 20, 31}, next;
  double start = seconds();
  struct llama_batch batch = llama_batch_get_one(prompt, 8);
  for (int i = 0; i < atoi(arguments[2]); i++) {
    if (llama_decode(context, batch)) return 1;
    next = best(llama_get_logits_ith(context, -1), words);
    const double end = seconds();
    printf("%.6f\n", end - start);
    start = end;
    batch = llama_batch_get_one(&next, 1);
  }
  return 0;
}
