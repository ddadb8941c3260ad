#pragma once
#include "pool.h"

enum { MAX_ADDRESSES = 64 };

// A repeated plan: `RepeatedPlan.native`. Each run takes one frame of a list, so that several threads can
// run the plan at a time.
struct plan {
  uint32_t (*run)(void* jobs, uint32_t count, void* outcome);
  struct pool* pool;
  uint64_t leaves, results, scratch, launches, word_count;
  struct {
    uint64_t word, address;  // of the jobs; among those of leaves, of results, and then of scratch memory
  } words[];
};

enum { PLAN_HEAD, PLAN_DEVICE, PLAN_SIZES, PLAN_FRAMES, PLAN_FAIL, PLAN_PACK, PLAN_STREAM };
// Of a device that runs launches in a stream (`NativeStream`); otherwise None.
enum { STREAM_ACQUIRE, STREAM_RELEASE, STREAM_IS_READY, STREAM_FINISH, STREAM_CONSTANTS };

// The address of the memory of a leaf of this kind (node.BUFFER), if Python need not know of the use.
bool mtl_memory_address(PyObject* plan, PyObject* node, PyObject* kind, uint64_t* address);

// Runs a plan with the addresses of its leaves, to which it adds those of its results and of scratch
// memory. Fills `memories` with new references to the results, and uses as many elements as it adds
// addresses. False if the plan has to be run by Python, or with an error. `pack`, unless it is
// null, writes the parameters of a frame for the numbers of the run, and returns whether it could.
bool mtl_run_plan(PyObject* plan, uint64_t* addresses,
                  bool (*pack)(PyObject* plan, PyObject* frame, void* numbers), void* numbers,
                  PyObject** memories);

static inline const struct plan* plan_head(PyObject* plan) {
  return (const struct plan*)PyBytes_AsString(PyTuple_GetItem(plan, PLAN_HEAD));
}

// Lets Python write the parameters of a frame, from a list or a tuple of numbers or nodes.
bool mtl_pack_by_python(PyObject* plan, PyObject* frame, PyObject* numbers);

void mtl_intern_names(void);
