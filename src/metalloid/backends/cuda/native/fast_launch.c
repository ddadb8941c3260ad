// The fast launch path: launches whose arguments are whole buffers, and numbers that are on the GPU
// already. All other launches are declined without side effects. The slow path in Python makes them:
// it alone defines the meaning of a launch and its errors.
#include "launch.h"
#include "values.h"

// The items of a plan (fast_launch.py).
enum {
  HEAD, SIZES, SHAPES, DEVICE, CONSTANTS, FREE_EVENTS, IS_TIMED, SETTINGS, BUFFER, INTEGERS,
  OTHER_NUMBERS, TIMED_EVENT, EVENT, PROGRAM, USES_PRINTF, ACQUIRE, RELEASE, FAIL
};

struct parameter {
  uint64_t position, bytes, least_bytes;  // of its word; of an element, and of a buffer at least
  uint32_t kind, number_bytes;  // of a number that may stand here: 'f', 'i', 'u', or 0
};

struct head {
  handle context, stream;
  uint64_t threadgroup_bytes, words, count;
  uint64_t alignment_mask;  // bits that words may not have, if the shapes require alignment
  struct parameter parameters[];
};

static PyObject *address_, *device_, *failure_, *host_copy_, *is_current_, *is_blocked_, *nbytes_, *pending_,
    *observes_, *recording_, *timing_, *values_;

static void make_names(void) {
  address_ = PyUnicode_InternFromString("address");
  device_ = PyUnicode_InternFromString("device");
  failure_ = PyUnicode_InternFromString("failure");
  host_copy_ = PyUnicode_InternFromString("host_copy");
  is_current_ = PyUnicode_InternFromString("is_current");
  is_blocked_ = PyUnicode_InternFromString("is_blocked");
  nbytes_ = PyUnicode_InternFromString("nbytes");
  pending_ = PyUnicode_InternFromString("_pending");
  observes_ = PyUnicode_InternFromString("observes");
  recording_ = PyUnicode_InternFromString("recording");
  timing_ = PyUnicode_InternFromString("timing");
  values_ = PyUnicode_InternFromString("_values");
}

// ---- attributes; on an error the launch is declined

static bool is_false(PyObject* object, PyObject* name) {
  PyObject* attribute = PyObject_GetAttr(object, name);
  if (!attribute) return false;
  const int truth = PyObject_IsTrue(attribute);
  Py_DecRef(attribute);
  return truth == 0;
}

static bool number_of(PyObject* object, PyObject* name, uint64_t* word) {
  PyObject* number = PyObject_GetAttr(object, name);
  if (!number) return false;
  const bool is_good = as_word(number, word);
  Py_DecRef(number);
  return is_good;
}

// ---- arguments

static bool bind_buffer(PyObject* plan, const struct parameter* p, PyObject* buffer,
                        uint64_t* word) {
  uint64_t bytes;
  if (!is(buffer, device_, PyTuple_GetItem(plan, DEVICE))) return false;
  if (!is(buffer, failure_, &_Py_NoneStruct)) return false;  // which the general path forgets
  if (!number_of(buffer, nbytes_, &bytes)) return false;
  if (bytes % p->bytes || bytes < p->least_bytes) return false;
  PyObject* copy = PyObject_GetAttr(buffer, host_copy_);
  if (!copy) return false;
  const bool is_current = copy == &_Py_NoneStruct || is_false(copy, is_current_);
  Py_DecRef(copy);
  return is_current && number_of(buffer, address_, word);
}

static bool bind_number(PyObject* plan, const struct parameter* p, PyObject* number,
                        PyObject* type, uint64_t* word) {
  const bool is_integer = contains(PyTuple_GetItem(plan, INTEGERS), type);
  if (!is_integer && (p->kind != 'f' || !contains(PyTuple_GetItem(plan, OTHER_NUMBERS), type)))
    return false;
  uint64_t bits = 0;
  if (!bits_of(p->kind, p->number_bytes, number, &bits)) return false;
  PyObject* key = PyBytes_FromStringAndSize((const char*)&bits, p->number_bytes);
  if (!key) return false;
  PyObject* address = PyDict_GetItemWithError(PyTuple_GetItem(plan, CONSTANTS), key);
  Py_DecRef(key);
  return address && as_word(address, word);
}

static bool bind(PyObject* plan, const struct parameter* p, PyObject* value, uint64_t* word) {
  PyObject* type = PyObject_Type(value);
  const bool is_bound = type == PyTuple_GetItem(plan, BUFFER)
                            ? bind_buffer(plan, p, value, word)
                            : p->kind && bind_number(plan, p, value, type, word);
  Py_DecRef(type);  // the value holds it
  return is_bound;
}

// ---- a launch

// The shape of an earlier launch with this grid, if it was a single driver launch.
static const struct shape* shape_of(PyObject* plan, PyObject* threads, PyObject* group_size) {
  PyObject* sizes = sizes_of(PyTuple_GetItem(plan, SIZES), threads, group_size);
  PyObject* shapes = sizes ? PyDict_GetItemWithError(PyTuple_GetItem(plan, SHAPES), sizes) : 0;
  if (!shapes || PyList_Size(shapes) != 1) return 0;
  return (const struct shape*)PyBytes_AsString(PyList_GetItem(shapes, 0));
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

// The event, or null if the launch is declined. Called with the device's lock held. A Python error
// may be set.
static PyObject* launch_locked(PyObject* plan, PyObject* const* given, int* status) {
  const struct head* head = (const void*)PyBytes_AsString(PyTuple_GetItem(plan, HEAD));
  PyObject *device = PyTuple_GetItem(plan, DEVICE), *arguments = given[0];
  if (!is_false(device, is_blocked_) || !runs_at_once(device, recording_, observes_)) return 0;
  if ((uint64_t)PyTuple_Size(arguments) != head->count || 8 * head->words > MAX_DATA) return 0;
  const struct shape* shape = shape_of(plan, given[1], given[2]);
  if (!shape) return 0;
  _Alignas(16) char memory[sizeof(struct launch) + MAX_DATA];
  struct launch* launch = (struct launch*)memory;
  memset(launch->words, 0, 8 * head->words);
  for (uint64_t i = 0; i < head->count; i++) {
    const struct parameter* p = &head->parameters[i];
    if (!bind(plan, p, PyTuple_GetItem(arguments, i), &launch->words[p->position])) return 0;
    if (launch->words[p->position] & head->alignment_mask) return 0;
  }
  launch->stream = head->stream;
  launch->threadgroup_bytes = head->threadgroup_bytes;
  PyObject* event = event_of(plan, arguments, launch);
  if (!event) return 0;
  void* thread = PyEval_SaveThread();  // a full queue makes the driver wait
  *status = mtl_enter(head->context);
  if (!*status) *status = mtl_launch(shape, launch);
  PyEval_RestoreThread(thread);
  for (uint64_t i = 0; !*status && i < head->count; i++) {
    PyObject *value = PyTuple_GetItem(arguments, i), *type = PyObject_Type(value);
    if (type == PyTuple_GetItem(plan, BUFFER)) PyObject_SetAttr(value, pending_, event);
    Py_DecRef(type);
  }
  return event;
}

// Takes the arguments, the threads and the size of a threadgroup of Kernel.__call__; returns an
// event, or None if the launch is declined.
static PyObject* fast_launch(PyObject* plan, PyObject* const* given, Py_ssize_t count) {
  PyObject* locked = PyObject_CallNoArgs(PyTuple_GetItem(plan, ACQUIRE));
  if (!locked) return 0;
  Py_DecRef(locked);
  int status = 0;
  PyObject *type, *value, *trace;
  PyObject* event = launch_locked(plan, given, &status);
  PyErr_Fetch(&type, &value, &trace);
  PyObject* released = PyObject_CallNoArgs(PyTuple_GetItem(plan, RELEASE));
  drop(released);
  if (released && type && !PyErr_GivenExceptionMatches(type, PyExc_Exception)) {
    drop(event);
    PyErr_Restore(type, value, trace);  // Ctrl-C
    return 0;
  }
  drop(type), drop(value), drop(trace);
  if (released && event && !status) return event;
  drop(event);
  if (!released) return 0;
  if (!status) {
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
  }
  PyObject* number = PyLong_FromLong(status);
  PyObject* raised = 0;
  if (number) raised = PyObject_CallFunctionObjArgs(PyTuple_GetItem(plan, FAIL), number, (void*)0);
  drop(number);
  return raised;
}

static PyMethodDef definition = {"fast_launch", fast_launch, METH_FASTCALL, 0};

__attribute__((visibility("default"))) PyObject* mtl_fast_launch(PyObject* plan) {
  if (!address_) make_names();
  return PyCFunction_NewEx(&definition, plan, 0);
}
