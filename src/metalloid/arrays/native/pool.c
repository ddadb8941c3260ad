// The pool of buffers: `Pool` in C. The interpreter's lock makes changes of the pool atomic: none calls
// code in Python.
#include "pool.h"

#include <stdlib.h>

static const char LEASE[] = "metalloid.lease", POOL[] = "metalloid.pool";
static PyObject *address_, *failure_, *nbytes_, *pending_, *wait_;

static bool size_of(PyObject* buffer, PyObject** object, int64_t* bytes) {
  *object = PyObject_GetAttr(buffer, nbytes_);
  *bytes = *object ? PyLong_AsLongLong(*object) : 0;
  return *object;
}

// The list of free buffers of a size; borrowed.
static PyObject* list_of(struct pool* pool, PyObject* bucket_bytes) {
  PyObject* list = PyDict_GetItemWithError(pool->free, bucket_bytes);
  if (list) return list;
  PyObject* empty = PyList_New(0);  // may collect garbage, which returns buffers
  list = empty ? PyDict_GetItemWithError(pool->free, bucket_bytes) : 0;
  if (empty && !list && !PyDict_SetItem(pool->free, bucket_bytes, empty)) list = empty;
  drop(empty);  // which the dictionary holds
  return list;
}

// Returns a buffer to the pool, with the last reference to its memory.
static void end_lease(PyObject* lease) {
  PyObject *type, *value, *trace, *object, *buffer = PyCapsule_GetPointer(lease, LEASE);
  struct pool* pool = PyCapsule_GetContext(lease);
  int64_t bytes, *counters = pool->counters;
  PyErr_Fetch(&type, &value, &trace);
  if (size_of(buffer, &object, &bytes)) {
    counters[LIVE_BYTES] -= bytes, counters[LIVE_BUFFERS]--;
    PyObject* list = list_of(pool, object);
    if (list && counters[FREE_BYTES] + bytes <= counters[MAX_FREE_BYTES] &&
        !PyList_Append(list, buffer))
      counters[FREE_BYTES] += bytes;
    Py_DecRef(object);
  }
  Py_DecRef(buffer);
  PyErr_Restore(type, value, trace);
}

// A lease of a buffer, which it takes a reference to.
static PyObject* new_lease(struct pool* pool, PyObject* buffer, int64_t bytes) {
  PyObject* lease = PyCapsule_New(buffer, LEASE, end_lease);
  if (!lease) return 0;
  Py_IncRef(buffer);
  PyCapsule_SetContext(lease, pool);
  int64_t* counters = pool->counters;
  counters[LIVE_BUFFERS]++;
  if ((counters[LIVE_BYTES] += bytes) > counters[PEAK_BYTES])
    counters[PEAK_BYTES] = counters[LIVE_BYTES];
  return lease;
}

// A free buffer of a size, or null.
static PyObject* take(struct pool* pool, PyObject* bucket_bytes, int64_t* bytes) {
  PyObject* list = PyDict_GetItemWithError(pool->free, bucket_bytes);
  const Py_ssize_t count = list ? PyList_Size(list) : 0;
  if (count < 1) return 0;
  *bytes = PyLong_AsLongLong(bucket_bytes);
  PyObject* buffer = new_reference(PyList_GetItem(list, count - 1));
  if (PyList_SetSlice(list, count - 1, count, 0)) {
    Py_DecRef(buffer);
    return 0;
  }
  pool->counters[FREE_BYTES] -= *bytes;
  return buffer;
}

PyObject* mtl_new_memory(struct pool* pool, PyObject* bucket_bytes) {
  int64_t bytes;
  PyObject* buffer = take(pool, bucket_bytes, &bytes);
  if (!buffer && PyErr_Occurred()) return 0;
  if (!buffer)
    return PyObject_CallFunctionObjArgs(mtl_layouts[MEMORY].type, pool->device, bucket_bytes, (void*)0);
  PyObject *lease = new_lease(pool, buffer, bytes), *address = 0, *memory = 0;
  if (lease) address = PyObject_GetAttr(buffer, address_);
  if (address) memory = PyType_GenericAlloc(mtl_layouts[MEMORY].type, 0);
  if (!memory) {
    drop(address), drop(lease);
    Py_DecRef(buffer);
    return 0;
  }
  put(memory, MEMORY, MEMORY_LEASE, lease);
  put(memory, MEMORY, MEMORY_ADDRESS, address);
  put(memory, MEMORY, MEMORY_BOUND, buffer);
  put(memory, MEMORY, MEMORY_DEVICE, new_reference(pool->device));
  put(memory, MEMORY, MEMORY_SHARING, PyLong_FromLong(0));
  return memory;
}

bool mtl_is_on_host(PyObject* lease) {
  return PyCapsule_IsValid(lease, LEASE) && ((struct pool*)PyCapsule_GetContext(lease))->is_on_host;
}

bool mtl_is_complete(PyObject* buffer) {
  return is(buffer, pending_, &_Py_NoneStruct) && is(buffer, failure_, &_Py_NoneStruct);
}

bool mtl_wait_for(PyObject* buffer) {
  if (mtl_is_complete(buffer)) return true;
  PyObject *method = PyObject_GetAttr(buffer, wait_), *done = method ? PyObject_CallNoArgs(method) : 0;
  drop(method), drop(done);
  return done;
}

// ---- functions for Python

// take(bytes): a free buffer of a size, or None.
static PyObject* take_function(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  int64_t bytes;
  PyObject* buffer = take(PyCapsule_GetPointer(self, POOL), args[0], &bytes);
  return buffer ? buffer : none_unless_raised();
}

// lease(buffer): a lease, with whose last reference the buffer returns to the pool.
static PyObject* lease_function(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  PyObject* object;
  int64_t bytes;
  if (!size_of(args[0], &object, &bytes)) return 0;
  Py_DecRef(object);
  return new_lease(PyCapsule_GetPointer(self, POOL), args[0], bytes);
}

// memory(bytes): a new Memory of a size of the pool.
static PyObject* memory_function(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  return mtl_new_memory(PyCapsule_GetPointer(self, POOL), args[0]);
}

static PyMethodDef memory_definition = {"memory", memory_function, METH_FASTCALL, 0};
static PyMethodDef take_definition = {"take", take_function, METH_FASTCALL, 0};
static PyMethodDef lease_definition = {"lease", lease_function, METH_FASTCALL, 0};

// The address of a pool, which lives as long as the process, and the functions `take`, `lease` and
// `memory`.
MTL_EXPORT PyObject* mtl_new_pool(PyObject* device, PyObject* free, int64_t* counters,
                                 bool is_on_host) {
  if (!address_) {
    address_ = PyUnicode_InternFromString("address");
    failure_ = PyUnicode_InternFromString("failure");
    nbytes_ = PyUnicode_InternFromString("nbytes");
    pending_ = PyUnicode_InternFromString("_pending");
    wait_ = PyUnicode_InternFromString("wait");
  }
  struct pool* pool = malloc(sizeof *pool);
  if (!pool) return new_reference(&_Py_NoneStruct);
  *pool = (struct pool){new_reference(device), new_reference(free), counters, is_on_host};
  PyObject* self = PyCapsule_New(pool, POOL, 0);
  if (!self) return 0;
  PyObject* functions = PyTuple_New(4);
  if (!functions) return 0;
  PyTuple_SetItem(functions, 0, PyLong_FromUnsignedLongLong((uintptr_t)pool));
  PyTuple_SetItem(functions, 1, PyCFunction_NewEx(&take_definition, self, 0));
  PyTuple_SetItem(functions, 2, PyCFunction_NewEx(&lease_definition, self, 0));
  PyTuple_SetItem(functions, 3, PyCFunction_NewEx(&memory_definition, self, 0));
  Py_DecRef(self);
  return functions;
}
