// Launches and copies in one call each. A launch: record an event, launch the kernel, record another event.
#include "launch.h"

#include <string.h>

typedef int launch_kernel(handle function, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, unsigned shared, handle stream, void** parameters,
                          void** extra);
typedef int record_event(handle event, handle stream);
typedef int set_current(handle context);
typedef int copy_to_host(void* to, uint64_t address, size_t bytes, handle stream);
typedef int query_stream(handle stream);
typedef int create_event(handle* event, unsigned flags);
typedef int elapsed_time(float* milliseconds, handle started, handle ended);

enum { INVALID_VALUE = 1, NOT_READY = 600, MAX_POLLS = 4096 };

static launch_kernel* launch_it;
static record_event* record_it;
static set_current* enter_it;
static copy_to_host* copy_it;
static query_stream* query_it;
static create_event* create_it;
static elapsed_time* elapsed_it;

__attribute__((visibility("default"))) void mtl_use_driver(void* launch, void* record, void* enter,
                                                           void* copy, void* query,
                                                           void* create, void* elapsed) {
  launch_it = (launch_kernel*)launch;
  record_it = (record_event*)record;
  enter_it = (set_current*)enter;
  copy_it = (copy_to_host*)copy;
  query_it = (query_stream*)query;
  create_it = (create_event*)create;
  elapsed_it = (elapsed_time*)elapsed;
}

int mtl_enter(handle context) { return enter_it(context); }

int mtl_create_event(uint64_t* event) {
  handle created = 0;
  const int status = create_it(&created, 0);
  *event = (uint64_t)created;
  return status;
}

__attribute__((visibility("default"))) int mtl_launch(const struct shape* shape,
                                                      const struct launch* launch) {
  _Alignas(16) char data[MAX_DATA];
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

__attribute__((visibility("default"))) uint32_t mtl_launch_row(const struct pair* pairs,
                                                               uint32_t count, int* status) {
  for (uint32_t i = 0; i < count; ++i) {
    *status = mtl_launch(pairs[i].shape, pairs[i].launch);
    if (*status) return i;
  }
  return count;
}

__attribute__((visibility("default"))) uint32_t mtl_read_times(const handle* events, uint32_t count,
                                                               float* milliseconds) {
  for (uint32_t i = 0; i < count; ++i)
    if (elapsed_it(milliseconds + i, events[2 * i], events[2 * i + 1])) return i;
  return count;
}

__attribute__((visibility("default"))) int mtl_copy_out(const struct window* windows, uint64_t count,
                                                        char* to, handle stream) {
  for (uint64_t i = 0; i < count; to += windows[i++].bytes) {
    const int status = copy_it(to, windows[i].address, windows[i].bytes, stream);
    if (status) return status;
  }
  int status = NOT_READY;
  for (int i = 0; i < MAX_POLLS && status == NOT_READY; i++) status = query_it(stream);
  return status;
}
