// The fast launch path of devices with memory of their own: launches whose arguments are whole buffers,
// and numbers that are on the device already. All other launches are declined without side effects. The
// slow path in Python makes them: it alone defines the meaning of a launch and its errors.
#pragma once
#include "values.h"

// The first items of a plan (runtime/arguments/fast_plan.py); those of the device follow.
enum {
  PARAMETERS, KNOWN, SIZES, SHAPES, DEVICE, CONSTANTS, BUFFER, SLOTS, INTEGERS, OTHER_NUMBERS, PROGRAM,
  ACQUIRE, RELEASE, FAIL, COMMON_ITEMS
};

enum { MAX_WORDS = 512, MAX_KNOWN = 1024 };

struct parameter {
  uint64_t position, bytes, least_bytes;  // of its word; of an element, and of a buffer at least
  uint32_t kind, number_bytes;  // of a number that may stand here: 'f', 'i', 'u', or 0
};

struct parameters {
  uint64_t words, count;
  uint64_t alignment_mask;  // bits that words may not have, if the shapes require alignment
  struct parameter items[];
};

// Where a buffer stores its attributes (fast_plan.py).
struct slots {
  uint64_t address, device, failure, host_copy, nbytes, pending;
};

// Launches with these words on a device. Returns the event, or null if the launch is declined; the
// status is that of the driver. A Python error may be set.
typedef PyObject* submit(PyObject* plan, PyObject* arguments, const void* shape,
                         const uint64_t* words, int* status);

static PyObject *is_current_, *is_blocked_, *observes_, *recording_;

static void make_common_names(void) {
  is_current_ = PyUnicode_InternFromString("is_current");
  is_blocked_ = PyUnicode_InternFromString("is_blocked");
  observes_ = PyUnicode_InternFromString("observes");
  recording_ = PyUnicode_InternFromString("recording");
}

// ---- attributes; on an error the launch is declined

static bool is_false(PyObject* object, PyObject* name) {
  PyObject* attribute = PyObject_GetAttr(object, name);
  if (!attribute) return false;
  const int truth = PyObject_IsTrue(attribute);
  Py_DecRef(attribute);
  return truth == 0;
}

// ---- slots of buffers, which may be empty

static PyObject** slot(PyObject* buffer, uint64_t offset) {
  return (PyObject**)((char*)buffer + offset);
}

static bool number_of(PyObject* buffer, uint64_t offset, uint64_t* word) {
  PyObject* number = *slot(buffer, offset);
  return number && as_word(number, word);
}

static const struct slots* slots_of(PyObject* plan) {
  return (const void*)PyBytes_AsString(PyTuple_GetItem(plan, SLOTS));
}

static void set_pending(PyObject* plan, PyObject* buffer, PyObject* event) {
  PyObject **pending = slot(buffer, slots_of(plan)->pending), *before = *pending;
  Py_IncRef(event);
  *pending = event;
  drop(before);
}

// ---- arguments

static bool bind_buffer(PyObject* plan, const struct parameter* p, PyObject* buffer,
                        uint64_t* word) {
  const struct slots* slots = slots_of(plan);
  uint64_t bytes;
  if (*slot(buffer, slots->device) != PyTuple_GetItem(plan, DEVICE)) return false;
  if (*slot(buffer, slots->failure) != &_Py_NoneStruct) return false;  // which the general path forgets
  if (!number_of(buffer, slots->nbytes, &bytes)) return false;
  if (bytes % p->bytes || bytes < p->least_bytes) return false;
  PyObject* copy = *slot(buffer, slots->host_copy);
  const bool is_current = copy == &_Py_NoneStruct || (copy && is_false(copy, is_current_));
  return is_current && number_of(buffer, slots->address, word);
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
static const void* shape_of(PyObject* plan, PyObject* threads, PyObject* group_size) {
  if (!is_size(threads) || !is_size(group_size)) return 0;
  PyObject* key = PyTuple_Pack(2, threads, group_size);
  if (!key) return 0;
  PyObject* known = PyTuple_GetItem(plan, KNOWN);
  PyObject* shape = PyDict_GetItemWithError(known, key);
  if (!shape) {
    PyObject* sizes = PyDict_GetItemWithError(PyTuple_GetItem(plan, SIZES), key);
    PyObject* shapes = sizes ? PyDict_GetItemWithError(PyTuple_GetItem(plan, SHAPES), sizes) : 0;
    if (shapes && PyList_Size(shapes) == 1) shape = PyList_GetItem(shapes, 0);
    if (PyDict_Size(known) >= MAX_KNOWN) PyDict_Clear(known);
    if (shape && PyDict_SetItem(known, key, shape)) shape = 0;
  }
  Py_DecRef(key);
  return shape ? PyBytes_AsString(shape) : 0;
}

static PyObject* bind_and_submit(PyObject* plan, PyObject* const* given, submit* submit_it,
                                 int* status) {
  const struct parameters* all = (const void*)PyBytes_AsString(PyTuple_GetItem(plan, PARAMETERS));
  PyObject *device = PyTuple_GetItem(plan, DEVICE), *arguments = given[0];
  if (!is_false(device, is_blocked_) || !runs_at_once(device, recording_, observes_)) return 0;
  if ((uint64_t)PyTuple_Size(arguments) != all->count || all->words > MAX_WORDS) return 0;
  const void* shape = shape_of(plan, given[1], given[2]);
  if (!shape) return 0;
  uint64_t words[MAX_WORDS];
  memset(words, 0, 8 * all->words);
  for (uint64_t i = 0; i < all->count; i++) {
    const struct parameter* p = &all->items[i];
    if (!bind(plan, p, PyTuple_GetItem(arguments, i), &words[p->position])) return 0;
    if (words[p->position] & all->alignment_mask) return 0;
  }
  PyObject* event = submit_it(plan, arguments, shape, words, status);
  if (!event) return 0;
  for (uint64_t i = 0; !*status && i < all->count; i++) {
    PyObject *value = PyTuple_GetItem(arguments, i), *type = PyObject_Type(value);
    if (type == PyTuple_GetItem(plan, BUFFER)) set_pending(plan, value, event);
    Py_DecRef(type);
  }
  return event;
}

// Takes the arguments, the threads and the size of a threadgroup of Kernel.__call__; returns an
// event, or None if the launch is declined. Devices whose functions hold the interpreter's lock from
// the first argument to the end need none of their own.
static PyObject* launch(PyObject* plan, PyObject* const* given, submit* submit_it, bool locks) {
  if (locks) {
    PyObject* locked = PyObject_CallNoArgs(PyTuple_GetItem(plan, ACQUIRE));
    if (!locked) return 0;
    Py_DecRef(locked);
  }
  int status = 0;
  PyObject *type, *value, *trace;
  PyObject* event = bind_and_submit(plan, given, submit_it, &status);
  if (event && !status && !locks) return event;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* released = &_Py_NoneStruct;
  if (locks) {
    released = PyObject_CallNoArgs(PyTuple_GetItem(plan, RELEASE));
    drop(released);
  }
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
