// Launches in one call each: set the arguments of a kernel and enqueue it.
#include "launch.h"

#include <string.h>

typedef int set_argument(handle kernel, unsigned index, size_t bytes, const void* value);
typedef int set_info(handle kernel, unsigned name, size_t bytes, const void* value);
typedef int enqueue(handle queue, handle kernel, unsigned dimensions, const size_t* first,
                    const size_t* work_items, const size_t* group, unsigned count,
                    const handle* events, handle* event);
typedef int event_info(handle event, unsigned name, size_t bytes, void* value, size_t* written);
typedef int flush(handle queue);
typedef int release(handle event);

enum {
  SVM_POINTERS = 0x11B6, EXECUTION_STATUS = 0x11D3, STARTED = 0x1282, ENDED = 0x1283, QUEUED = 3
};

static set_argument* set_it;
static set_info* inform;
static enqueue* enqueue_it;
static event_info *status_of, *time_of;
static flush* flush_it;
static release* release_it;

__attribute__((visibility("default"))) void mtl_use_driver(void* set, void* info, void* enqueue_kernel,
                                                           void* status, void* time,
                                                           void* flush_queue, void* release_event) {
  set_it = (set_argument*)set;
  inform = (set_info*)info;
  enqueue_it = (enqueue*)enqueue_kernel;
  status_of = (event_info*)status;
  time_of = (event_info*)time;
  flush_it = (flush*)flush_queue;
  release_it = (release*)release_event;
}

// Arguments that a kernel has already are not set: that takes the driver longer than to compare them.

static int set_data(struct kernel* kernel, const char* data, size_t bytes) {
  if (kernel->data_bytes == bytes && !memcmp(kernel->data, data, bytes)) return 0;
  kernel->data_bytes = 0;
  const int status = set_it(kernel->driver_kernel, 0, bytes, data);
  if (status) return status;
  memcpy(kernel->data, data, bytes);
  kernel->data_bytes = bytes;
  return 0;
}

static int set_threadgroup_bytes(struct kernel* kernel, uint64_t bytes) {
  if (kernel->threadgroup_bytes == bytes) return 0;
  kernel->threadgroup_bytes = 0;
  const int status = set_it(kernel->driver_kernel, 1, bytes, 0);
  if (!status) kernel->threadgroup_bytes = bytes;
  return status;
}

__attribute__((visibility("default"))) int mtl_launch(const struct shape* shape,
                                                      const struct launch* launch, handle* event) {
  _Alignas(16) char data[MAX_DATA];
  const size_t words = shape->word_bytes, bytes = words + 8 + sizeof shape->geometry;
  if (bytes > sizeof data) return INVALID_ARG_SIZE;
  memcpy(data, launch->words, words);
  memcpy(data + words, &launch->report_block, 8);
  memcpy(data + words + 8, shape->geometry, sizeof shape->geometry);
  struct kernel* kernel = shape->kernel;
  int status = set_data(kernel, data, bytes);
  if (!status) status = set_threadgroup_bytes(kernel, launch->threadgroup_bytes);
  if (!status && launch->pointer_count)
    status = inform(kernel->driver_kernel, SVM_POINTERS, 8 * launch->pointer_count,
                    launch->pointers);
  if (status) return status;
  return enqueue_it(launch->queue, kernel->driver_kernel, 3, shape->offset, shape->work_items,
                    shape->group, 0, 0, event);
}

int mtl_poll(handle queue, handle event, uint64_t* nanoseconds) {
  int32_t state = 0;
  const int status = status_of(event, EXECUTION_STATUS, sizeof state, &state, 0);
  if (status || state < 0) return status ? status : state;
  if (state == QUEUED) flush_it(queue);
  if (state) return 1;
  uint64_t started = 0, ended = 0;
  if (!time_of(event, STARTED, 8, &started, 0) && !time_of(event, ENDED, 8, &ended, 0))
    *nanoseconds += ended - started;
  return 0;
}

int mtl_release(handle event) { return release_it(event); }
