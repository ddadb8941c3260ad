// Launch descriptors, which Python packs (launcher.py), and the functions that submit them.
#pragma once
#include <stdint.h>

typedef void* handle;

enum { MAX_DATA = 4096 };  // bytes of parameters that every GPU takes

// What is constant for a program and a grid.
struct shape {
  handle function;
  uint64_t word_bytes;
  uint32_t blocks[3], threads[3];
  uint32_t geometry[10];  // the end of launch_data in entry.h, after the words
};

// What changes with each launch. Timing events are 0 if they are not recorded.
struct launch {
  handle stream, started, ended;
  uint64_t threadgroup_bytes;
  uint64_t words[];
};

// A shape and a launch of it.
struct pair {
  const struct shape* shape;
  const struct launch* launch;
};

// These return the driver's status, 0 for success.
int mtl_launch(const struct shape* shape, const struct launch* launch);
int mtl_enter(handle context);  // makes it the current one of this thread
int mtl_create_event(uint64_t* event);

// Stops at the first failure, and writes its status. Returns the number of launches that have succeeded.
uint32_t mtl_launch_row(const struct pair* pairs, uint32_t count, int* status);

// Times of launches in the order of their stream, each between two events. Stops at the first that has
// not ended, or has failed. Returns the number of those before it.
uint32_t mtl_read_times(const handle* events, uint32_t count, float* milliseconds);

struct window {
  uint64_t address, bytes;
};

// Copies memory of the GPU to the host, one window after the other, and waits for the end, but not for
// longer than a few milliseconds: the status is NOT_READY then.
int mtl_copy_out(const struct window* windows, uint64_t count, char* to, handle stream);
