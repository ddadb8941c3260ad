#pragma once
#include "layouts.h"

// Memory of a device in use and free; `Pool` of memory.py reads the counters.
enum { LIVE_BYTES, LIVE_BUFFERS, PEAK_BYTES, FREE_BYTES, MAX_FREE_BYTES };

struct pool {
  PyObject *device, *buckets;  // by size, capsules
  int64_t* counters;
  bool is_on_host;  // whether Python can access the memory
};

// The buffers of one size of a pool, which live as long as the process.
struct bucket {
  struct pool* pool;
  PyObject* size;
  int64_t bytes;
  struct lease* free;
};

// The bucket of a size of the pool; null with an error.
struct bucket* mtl_bucket_of(struct pool* pool, PyObject* size);

// The address of a Memory. False, perhaps with an error, if Python has to find it.
bool mtl_address_of(PyObject* memory, uint64_t* address);

// A new Memory of a bucket.
PyObject* mtl_new_memory(struct bucket* bucket);

// Whether memory with this lease, or None, is of a native pool whose memory Python can access.
bool mtl_is_on_host(PyObject* lease);

// Whether no launch uses a buffer, and none that wrote to it failed.
bool mtl_is_complete(PyObject* buffer);

// Waits for the launches that use a buffer. False, with an error, if one that wrote to it failed.
bool mtl_wait_for(PyObject* buffer);
