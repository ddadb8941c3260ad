// Calls of kernels that need nothing but a fast launch. Others, and their errors, are left to Python.
#include "values.h"

enum { TP_CALL_OFFSET = 128 };

static uint64_t fast_launch_offset;
static PyObject *threads_, *group_size_, *wait_, *call_;

// An argument of a call by name, or None; counts those that are given.
static PyObject* named(PyObject* keywords, PyObject* name, Py_ssize_t* count) {
  PyObject* value = PyDict_GetItemWithError(keywords, name);
  *count += !!value;
  return value ? value : &_Py_NoneStruct;
}

static PyObject* no_event(void) {
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}

// The event of a launch; None if Python has to call the kernel.
static PyObject* launch(PyObject* fast, PyObject* args, PyObject* keywords) {
  Py_ssize_t count = 0;
  PyObject* threads = named(keywords, threads_, &count);
  PyObject* group_size = named(keywords, group_size_, &count);
  PyObject* wait = named(keywords, wait_, &count);
  const bool is_known = wait == &_Py_NoneStruct || wait == &_Py_TrueStruct || wait == &_Py_FalseStruct;
  if (count != PyDict_Size(keywords) || !is_known) return no_event();
  PyObject* event =
      PyObject_CallFunctionObjArgs(fast, args, threads, group_size, wait, (void*)0);
  if (!event || event == &_Py_NoneStruct || wait != &_Py_TrueStruct) return event;
  PyObject* waited = PyObject_CallMethodObjArgs(event, wait_, (void*)0);
  Py_DecRef(event);
  return waited;
}

static PyObject* call_kernel(PyObject* kernel, PyObject* args, PyObject* keywords) {
  PyObject* fast = *(PyObject**)((char*)kernel + fast_launch_offset);
  if (fast && fast != &_Py_NoneStruct && keywords) {
    Py_IncRef(fast);  // the call may replace it
    PyObject* event = launch(fast, args, keywords);
    Py_DecRef(fast);
    if (event != &_Py_NoneStruct) return event;
    Py_DecRef(event);
  }
  PyObject* method = PyObject_GetAttr(kernel, call_);
  PyObject* event = method ? PyObject_Call(method, args, keywords) : 0;
  drop(method);
  return event;
}

// Calls of kernels look for a fast launch without Python's `__call__`, until a class attribute replaces it.
// The interpreter has no function to replace a slot: it stays as it is where the type is laid out
// differently. Takes the offset of the slot of `_fast_launch`.
__attribute__((visibility("default"))) void mtl_define_kernel_calls(PyObject* type, uint64_t offset) {
  void** slot = (void**)((char*)type + TP_CALL_OFFSET);
  if (*slot != PyType_GetSlot(type, Py_tp_call)) return;
  threads_ = PyUnicode_InternFromString("threads");
  group_size_ = PyUnicode_InternFromString("group_size");
  wait_ = PyUnicode_InternFromString("wait");
  call_ = PyUnicode_InternFromString("_call");
  fast_launch_offset = offset;
  *slot = (void*)call_kernel;
}
