#pragma once
#include "layouts.h"

// Memory of a device in use and free; `Pool` of memory.py reads the counters.
enum { LIVE_BYTES, LIVE_BUFFERS, PEAK_BYTES, FREE_BYTES, MAX_FREE_BYTES };

struct pool {
  PyObject *device, *free;  // by size, lists of buffers
  int64_t* counters;
  bool is_on_host;  // whether Python can access the memory
};

// A new Memory of a size of the pool.
PyObject* mtl_new_memory(struct pool* pool, PyObject* bucket_bytes);

// Whether memory with this lease, or None, is of a native pool whose memory Python can access.
bool mtl_is_on_host(PyObject* lease);

// Whether no launch uses a buffer, and none that wrote to it failed.
bool mtl_is_complete(PyObject* buffer);

// Waits for the launches that use a buffer. False, with an error, if one that wrote to it failed.
bool mtl_wait_for(PyObject* buffer);
