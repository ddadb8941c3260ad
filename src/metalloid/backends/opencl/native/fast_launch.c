// The fast launch path: launches without the interpreter; and events of the driver as objects of it.
// The interpreter's lock is held until a launch is in the queue, as pyopencl does.
#include "launch.h"

#include "fast_launch.h"

// The items of a plan after the common ones (fast_launch.py).
enum { HEAD = COMMON_ITEMS, EVENT, ADD_IN_FLIGHT };

struct head {
  handle queue;
  uint64_t threadgroup_bytes;
  uint64_t arena;  // of constants, if memory is to be named; else 0
};

static const char EVENT_TYPE[] = "cl_event";

static PyObject *of_device_, *of_program_, *in_use_, *events_;  // attributes of an event

static void make_names(void) {
  make_common_names();
  of_device_ = PyUnicode_InternFromString("_device");
  of_program_ = PyUnicode_InternFromString("_program");
  in_use_ = PyUnicode_InternFromString("_in_use");
  events_ = PyUnicode_InternFromString("_events");
}

static void release_event(PyObject* capsule) {
  mtl_release(PyCapsule_GetPointer(capsule, EVENT_TYPE));
}

// An object that releases an event of the driver.
static PyObject* owner_of(handle event) {
  PyObject* capsule = PyCapsule_New(event, EVENT_TYPE, release_event);
  if (!capsule) mtl_release(event);
  return capsule;
}

// Adds an event of the driver to a list.
__attribute__((visibility("default"))) int mtl_add_event(PyObject* events, handle event) {
  PyObject* capsule = owner_of(event);
  const bool is_added = capsule && !PyList_Append(events, capsule);
  drop(capsule);
  return is_added ? 0 : OUT_OF_HOST_MEMORY;
}

// The status of an event, or of a list of them: of the first one that failed, else of one that has not ended.
__attribute__((visibility("default"))) int mtl_poll_all(handle queue, PyObject* events,
                                                        uint64_t* nanoseconds) {
  int outcome = 0;
  *nanoseconds = 0;
  if (PyCapsule_IsValid(events, EVENT_TYPE))
    return mtl_poll(queue, PyCapsule_GetPointer(events, EVENT_TYPE), nanoseconds);
  for (Py_ssize_t i = 0, count = PyList_Size(events); i < count; i++) {
    const handle event = PyCapsule_GetPointer(PyList_GetItem(events, i), EVENT_TYPE);
    const int status = mtl_poll(queue, event, nanoseconds);
    if (status < 0) return status;
    if (status) outcome = status;
  }
  return outcome;
}

// An OpenclEvent of a launch that is not in the queue yet.
static PyObject* new_event(PyObject* plan, PyObject* arguments) {
  PyObject* event = PyType_GenericAlloc(PyTuple_GetItem(plan, EVENT), 0);
  if (event && !PyObject_SetAttr(event, of_device_, PyTuple_GetItem(plan, DEVICE)) &&
      !PyObject_SetAttr(event, of_program_, PyTuple_GetItem(plan, PROGRAM)) &&
      !PyObject_SetAttr(event, in_use_, arguments))
    return event;
  drop(event);
  return 0;
}

static bool add_to_queue(PyObject* plan, PyObject* event, PyObject* driver_event) {
  if (PyObject_SetAttr(event, events_, driver_event)) return false;
  PyObject* reference = PyWeakref_NewRef(event, 0);
  if (!reference) return false;
  PyObject* added =
      PyObject_CallFunctionObjArgs(PyTuple_GetItem(plan, ADD_IN_FLIGHT), reference, (void*)0);
  Py_DecRef(reference);
  drop(added);
  return added;
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
  PyObject* event = new_event(plan, arguments);
  if (!event) return 0;
  handle driver_event = 0;
  *status = mtl_launch(shape, &launch, &driver_event);
  if (*status) return event;
  PyObject* owner = owner_of(driver_event);
  if (!owner || !add_to_queue(plan, event, owner)) *status = OUT_OF_HOST_MEMORY;
  drop(owner);
  return event;
}

static PyObject* fast_launch(PyObject* plan, PyObject* const* given, Py_ssize_t count) {
  return launch(plan, given, submit_launch, false);
}

static PyMethodDef definition = {"fast_launch", fast_launch, METH_FASTCALL, 0};

__attribute__((visibility("default"))) PyObject* mtl_fast_launch(PyObject* plan) {
  if (!observes_) make_names();
  return PyCFunction_NewEx(&definition, plan, 0);
}
