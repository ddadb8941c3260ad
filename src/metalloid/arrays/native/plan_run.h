#pragma once
#include "pool.h"

enum { MAX_ADDRESSES = 1024 };

// The numbers of a repeated plan: `RepeatedPlan.native`.
struct plan_head {
  uint32_t (*run)(void* jobs, uint32_t count, void* outcome);
  struct pool* pool;
  uint64_t leaves, results, scratch, launches, word_count;
  struct {
    uint64_t word, address;  // of the jobs; among those of leaves, of results, and then of scratch memory
  } words[];
};

// A repeated plan. Each run takes one frame, so that several threads can run the plan at a time: the one
// that the run before took, or one of the list.
struct plan {
  PyObject* items;  // a tuple, which holds the following
  const struct plan_head* head;
  PyObject *device, *frames, *fail, *pack, *stream;  // device: the dictionary of its attributes
  PyObject* frame;                                   // or null, while a thread uses it
  uint64_t* words;                                   // of the frame
  struct bucket* buckets[];                          // of results and scratch memory
};

// Of a device that runs launches in a stream (`NativeStream`); otherwise None.
enum { STREAM_ACQUIRE, STREAM_RELEASE, STREAM_IS_READY, STREAM_FINISH, STREAM_CONSTANTS };

// The plan of an object from mtl_new_plan.
struct plan* mtl_plan_of(PyObject* capsule);

static inline bool has_stream(const struct plan* plan) { return plan->stream != &_Py_NoneStruct; }

// Whether something observes the launches of the device, or records them to run later.
bool mtl_is_recording(const struct plan* plan);

// The address of the memory of a leaf of this kind (node.BUFFER), if Python need not know of the use.
bool mtl_memory_address(const struct plan* plan, PyObject* node, PyObject* kind, uint64_t* address);

// Runs a plan with the addresses of its leaves, to which it adds those of its results and of scratch
// memory. Fills `memories` with new references to the results, and uses as many elements as it adds
// addresses. False if the plan has to be run by Python, or with an error. `pack`, unless it is
// null, writes the parameters of a frame for the numbers of the run, and returns whether it could.
// `overwritten`, unless it is null, is a list of the memories of leaves to which launches in a stream write.
bool mtl_run_plan(struct plan* plan, uint64_t* addresses,
                  bool (*pack)(struct plan* plan, PyObject* frame, void* numbers), void* numbers,
                  PyObject** memories, PyObject* overwritten);

// Lets Python write the parameters of a frame, from a list or a tuple of numbers or nodes.
bool mtl_pack_by_python(struct plan* plan, PyObject* frame, PyObject* numbers);

// A constant among the parameters of a frame: where it is written, its type as in values.h, and its index
// among the inputs of the plan.
struct number {
  uint64_t address;
  uint32_t kind, bytes;
  uint64_t index;
};

// Those of a frame, which holds them; null, perhaps with an error, if Python has to write them.
const struct number* mtl_numbers_of(PyObject* frame, size_t* count);

// Writes a constant. False, perhaps with an error, if the value does not fit.
bool mtl_write_number(const struct number* number, PyObject* value);
