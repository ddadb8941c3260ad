// The fast launch path: launches without the interpreter; and events of the driver as objects of it.
#include "launch.h"

#include "fast_launch.h"

// The items of a plan after the common ones (fast_launch.py).
enum { HEAD = COMMON_ITEMS, EVENT };

struct head {
  handle queue;
  uint64_t threadgroup_bytes;
  uint64_t arena;  // of constants, if memory is to be named; else 0
};

static const char EVENT_TYPE[] = "cl_event";

static void release_event(PyObject* capsule) {
  mtl_release(PyCapsule_GetPointer(capsule, EVENT_TYPE));
}

// Adds an event of the driver to a list, whose items release theirs.
__attribute__((visibility("default"))) int mtl_add_event(PyObject* events, handle event) {
  PyObject* capsule = PyCapsule_New(event, EVENT_TYPE, release_event);
  if (!capsule) mtl_release(event);
  const bool is_added = capsule && !PyList_Append(events, capsule);
  drop(capsule);
  return is_added ? 0 : OUT_OF_HOST_MEMORY;
}

// The status of several events: of the first one that failed, else of one that has not ended.
__attribute__((visibility("default"))) int mtl_poll_all(handle queue, PyObject* events,
                                                        uint64_t* nanoseconds) {
  int outcome = 0;
  *nanoseconds = 0;
  for (Py_ssize_t i = 0, count = PyList_Size(events); i < count; i++) {
    const handle event = PyCapsule_GetPointer(PyList_GetItem(events, i), EVENT_TYPE);
    const int status = mtl_poll(queue, event, nanoseconds);
    if (status < 0) return status;
    if (status) outcome = status;
  }
  return outcome;
}

static PyObject* submit_launch(PyObject* plan, PyObject* arguments, const void* shape,
                               const uint64_t* words, int* status) {
  const struct head* head = (const void*)PyBytes_AsString(PyTuple_GetItem(plan, HEAD));
  uint64_t pointers[MAX_WORDS + 1];
  struct launch launch = {head->queue, head->threadgroup_bytes, 0, 0, words, pointers};
  if (head->arena) {
    pointers[launch.pointer_count++] = head->arena;
    const uint64_t count = ((const struct shape*)shape)->word_bytes / 8;
    for (uint64_t i = 0; i < count; i++)
      if (words[i]) pointers[launch.pointer_count++] = words[i];
  }
  PyObject* events = PyList_New(0);
  if (!events) return 0;
  PyObject* event = PyObject_CallFunctionObjArgs(
      PyTuple_GetItem(plan, EVENT), PyTuple_GetItem(plan, DEVICE), PyTuple_GetItem(plan, PROGRAM),
      arguments, events, (void*)0);
  handle driver_event = 0;
  if (event) {
    void* thread = PyEval_SaveThread();  // a full queue makes the driver wait
    *status = mtl_launch(shape, &launch, &driver_event);
    PyEval_RestoreThread(thread);
  }
  if (driver_event && mtl_add_event(events, driver_event)) *status = OUT_OF_HOST_MEMORY;
  drop(events);
  return event;
}

static PyObject* fast_launch(PyObject* plan, PyObject* const* given, Py_ssize_t count) {
  return launch_with_lock(plan, given, submit_launch);
}

static PyMethodDef definition = {"fast_launch", fast_launch, METH_FASTCALL, 0};

__attribute__((visibility("default"))) PyObject* mtl_fast_launch(PyObject* plan) {
  if (!address_) make_common_names();
  return PyCFunction_NewEx(&definition, plan, 0);
}
