// The fast launch path: launches without the interpreter, between a pair of timing events.
#include "launch.h"

#include "fast_launch.h"

// The items of a plan after the common ones (fast_launch.py).
enum {
  HEAD = COMMON_ITEMS, FREE_EVENTS, IS_TIMED, SETTINGS, TIMED_EVENT, EVENT, USES_PRINTF
};

struct head {
  handle context, stream;
  uint64_t threadgroup_bytes;
};

static PyObject *timing_, *values_;

static void make_names(void) {
  make_common_names();
  timing_ = PyUnicode_InternFromString("timing");
  values_ = PyUnicode_InternFromString("_values");
}

static bool is_timed(PyObject* plan) {
  PyObject* set = PyObject_GetAttr(PyTuple_GetItem(plan, SETTINGS), values_);
  if (!set) return true;
  PyObject* timing = PyDict_GetItemWithError(set, timing_);
  const bool is_on = PyObject_IsTrue(timing ? timing : PyTuple_GetItem(plan, IS_TIMED));
  Py_DecRef(set);
  return is_on;
}

// A pair of timing events that no launch uses, and their handles. More are created where launches
// whose events the program holds use all: while it profiles.
static PyObject* free_pair(PyObject* plan, uint64_t* started, uint64_t* ended) {
  PyObject* free_events = PyTuple_GetItem(plan, FREE_EVENTS);
  const Py_ssize_t count = PyList_Size(free_events);
  if (count > 0) {
    PyObject* pair = PyList_GetItem(free_events, count - 1);
    Py_IncRef(pair);
    if (!PyList_SetSlice(free_events, count - 1, count, 0) &&
        as_word(PyTuple_GetItem(pair, 0), started) && as_word(PyTuple_GetItem(pair, 1), ended))
      return pair;
    Py_DecRef(pair);
    return 0;
  }
  const struct head* head = (const void*)PyBytes_AsString(PyTuple_GetItem(plan, HEAD));
  if (mtl_enter(head->context) || mtl_create_event(started) || mtl_create_event(ended)) return 0;
  PyObject* first = PyLong_FromUnsignedLongLong(*started);
  PyObject* second = PyLong_FromUnsignedLongLong(*ended);
  PyObject* pair = first && second ? PyTuple_Pack(2, first, second) : 0;
  drop(first), drop(second);
  return pair;
}

// The event of the launch, with a pair of timing events.
static PyObject* event_of(PyObject* plan, PyObject* arguments, struct launch* launch) {
  PyObject* device = PyTuple_GetItem(plan, DEVICE);
  PyObject* program = PyTuple_GetItem(plan, PROGRAM);
  PyObject* uses_printf = PyTuple_GetItem(plan, USES_PRINTF);
  if (!is_timed(plan)) {
    launch->started = launch->ended = 0;
    return PyObject_CallFunctionObjArgs(PyTuple_GetItem(plan, EVENT), device, program, uses_printf,
                                        arguments, (void*)0);
  }
  uint64_t started = 0, ended = 0;
  PyObject* pair = free_pair(plan, &started, &ended);
  if (!pair) return 0;
  PyObject* event = PyObject_CallFunctionObjArgs(PyTuple_GetItem(plan, TIMED_EVENT), device,
                                                 program, uses_printf, arguments, pair, (void*)0);
  Py_DecRef(pair);
  launch->started = (handle)started, launch->ended = (handle)ended;
  return event;
}

static PyObject* submit_launch(PyObject* plan, PyObject* arguments, const void* shape,
                               const uint64_t* words, int* status) {
  const struct head* head = (const void*)PyBytes_AsString(PyTuple_GetItem(plan, HEAD));
  const uint64_t word_bytes = ((const struct shape*)shape)->word_bytes;
  _Alignas(16) char memory[sizeof(struct launch) + MAX_DATA];
  if (word_bytes > MAX_DATA) return 0;
  struct launch* launch = (struct launch*)memory;
  memcpy(launch->words, words, word_bytes);
  launch->stream = head->stream;
  launch->threadgroup_bytes = head->threadgroup_bytes;
  PyObject* event = event_of(plan, arguments, launch);
  if (!event) return 0;
  void* thread = PyEval_SaveThread();  // a full queue makes the driver wait
  *status = mtl_enter(head->context);
  if (!*status) *status = mtl_launch(shape, launch);
  PyEval_RestoreThread(thread);
  return event;
}

static PyObject* fast_launch(PyObject* plan, PyObject* const* given, Py_ssize_t count) {
  return launch(plan, given, submit_launch, true);
}

static PyMethodDef definition = {"fast_launch", fast_launch, METH_FASTCALL, 0};

__attribute__((visibility("default"))) PyObject* mtl_fast_launch(PyObject* plan) {
  if (!observes_) make_names();
  return PyCFunction_NewEx(&definition, plan, 0);
}
