// A launch in one call of Python's: two marks in the stream, the parameters, and the launch between.
#include <stdint.h>
#include <string.h>

typedef void* handle;
typedef int launch_kernel(handle function, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, unsigned shared, handle stream, void** parameters,
                          void** extra);
typedef int record_event(handle event, handle stream);

// What a program packs once for each shape of a grid (launcher.py).
struct shape {
  handle function;
  uint64_t word_bytes;
  uint32_t blocks[3], threads[3];
  uint32_t geometry[10];  // as entry.h reads it behind the words
};

// What differs from launch to launch; marks that are not wanted are 0.
struct launch {
  handle stream, started, ended;
  uint64_t threadgroup_bytes;
  uint64_t words[];
};

enum { MOST_DATA = 4096, INVALID_VALUE = 1 };  // bytes of parameters that every GPU takes

static launch_kernel* launch_it;
static record_event* record_it;

__attribute__((visibility("default"))) void mtl_use_driver(void* launch, void* record) {
  launch_it = (launch_kernel*)launch;
  record_it = (record_event*)record;
}

// Gives what the driver says: 0 if all went well.
__attribute__((visibility("default"))) int mtl_launch(const struct shape* shape,
                                                      const struct launch* launch) {
  _Alignas(16) char data[MOST_DATA];
  const uint64_t word_bytes = shape->word_bytes;
  if (word_bytes + sizeof shape->geometry > sizeof data) return INVALID_VALUE;
  memcpy(data, launch->words, word_bytes);
  memcpy(data + word_bytes, shape->geometry, sizeof shape->geometry);
  void* parameters[] = {data};
  const uint32_t *b = shape->blocks, *t = shape->threads;
  int status = launch->started ? record_it(launch->started, launch->stream) : 0;
  if (!status)
    status = launch_it(shape->function, b[0], b[1], b[2], t[0], t[1], t[2],
                       (unsigned)launch->threadgroup_bytes, launch->stream, parameters, 0);
  if (!status && launch->ended) status = record_it(launch->ended, launch->stream);
  return status;
}
