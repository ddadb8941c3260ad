// Launch descriptors, which Python packs (launcher.py), and the functions that submit them.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef void* handle;

enum { MAX_DATA = 4096 };  // bytes of a kernel's first argument
enum { OUT_OF_HOST_MEMORY = -6, INVALID_ARG_SIZE = -51 };

// A kernel of the driver, and the arguments that it has.
struct kernel {
  handle driver_kernel;
  uint64_t threadgroup_bytes, data_bytes;  // 0 before they are set
  char data[MAX_DATA];
};

// What is constant for a program and a grid.
struct shape {
  struct kernel* kernel;
  uint64_t word_bytes;
  size_t offset[3], work_items[3], group[3];
  uint32_t geometry[12];  // the end of launch_data in entry.h, after the words and the report block
};

// What changes with each launch. The pointers say which memory it may use; devices that share all memory
// with the host want none.
struct launch {
  handle queue;
  uint64_t threadgroup_bytes, report_block, pointer_count;
  const uint64_t *words, *pointers;
};

// Returns the driver's status, 0 for success. The event is the caller's to release.
int mtl_launch(const struct shape* shape, const struct launch* launch, handle* event);

// The status of an event: negative if its launch failed, 1 if it has not ended, or 0, after which its
// nanoseconds were added. Has the driver start what it has only queued.
int mtl_poll(handle queue, handle event, uint64_t* nanoseconds);
int mtl_release(handle event);
