// What a launch is made of: what Python packs (launcher.py), and what hands it to the driver.
#pragma once
#include <stdint.h>

typedef void* handle;

enum { MOST_DATA = 4096 };  // bytes of parameters that every GPU takes

// What a program packs once for each shape of a grid.
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

// Both give what the driver says: 0 if all went well.
int mtl_launch(const struct shape* shape, const struct launch* launch);
int mtl_enter(handle context);  // makes it the current one of this thread
