// The pool of buffers: `Pool` in C. The interpreter's lock makes changes of the pool atomic: none calls
// code in Python.
#include "pool.h"

#include <stdlib.h>

// A lease of a buffer, which returns to the pool with the last reference to the lease. Free buffers retain
// their lease, whose memory is that of the next one.
struct lease {
  Py_ssize_t references;
  PyObject* type;
  struct bucket* bucket;
  PyObject *buffer, *address;
  uint64_t word;        // the address
  struct lease* next;  // of those that are free
};

static const char POOL[] = "metalloid.pool", BUCKET[] = "metalloid.bucket";
static PyObject *lease_type, *zero_, *address_, *failure_, *nbytes_, *pending_, *wait_;

struct bucket* mtl_bucket_of(struct pool* pool, PyObject* size) {
  PyObject* known = PyDict_GetItemWithError(pool->buckets, size);
  if (known) return PyCapsule_GetPointer(known, BUCKET);
  const int64_t bytes = PyLong_AsLongLong(size);
  if (PyErr_Occurred()) return 0;
  struct bucket* bucket = malloc(sizeof *bucket);
  PyObject* capsule = bucket ? PyCapsule_New(bucket, BUCKET, 0) : 0;
  const bool is_stored = capsule && !PyDict_SetItem(pool->buckets, size, capsule);
  drop(capsule);
  if (is_stored) {
    *bucket = (struct bucket){pool, new_reference(size), bytes, 0};
  } else {
    free(bucket);
    bucket = 0;
  }
  return bucket;
}

// Frees a lease, and its reference to the buffer.
static void free_lease(struct lease* lease) {
  PyObject *buffer = lease->buffer, *address = lease->address;
  PyObject_Free(lease);
  Py_DecRef(address);
  Py_DecRef(buffer);
}

static void end_lease(PyObject* self) {
  struct lease* lease = (struct lease*)self;
  struct bucket* bucket = lease->bucket;
  int64_t* counters = bucket->pool->counters;
  Py_DecRef(lease->type);
  counters[LIVE_BYTES] -= bucket->bytes, counters[LIVE_BUFFERS]--;
  if (counters[FREE_BYTES] + bucket->bytes <= counters[MAX_FREE_BYTES]) {
    counters[FREE_BYTES] += bucket->bytes;
    lease->next = bucket->free;
    bucket->free = lease;
    return;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  free_lease(lease);
  PyErr_Restore(type, value, trace);
}

// Counts the buffer as in use.
static void begin_lease(struct lease* lease) {
  int64_t *counters = lease->bucket->pool->counters, bytes = lease->bucket->bytes;
  counters[LIVE_BUFFERS]++;
  if ((counters[LIVE_BYTES] += bytes) > counters[PEAK_BYTES])
    counters[PEAK_BYTES] = counters[LIVE_BYTES];
}

// A free buffer, whose lease is not an object yet; null if there is none.
static struct lease* take(struct bucket* bucket) {
  struct lease* lease = bucket->free;
  if (!lease) return 0;
  bucket->free = lease->next;
  bucket->pool->counters[FREE_BYTES] -= bucket->bytes;
  return lease;
}

PyObject* mtl_new_memory(struct bucket* bucket) {
  struct lease* lease = take(bucket);
  PyObject* device = bucket->pool->device;
  if (!lease)
    return PyObject_CallFunctionObjArgs(mtl_layouts[MEMORY].type, device, bucket->size, (void*)0);
  PyObject* object = PyObject_Init((PyObject*)lease, lease_type);
  begin_lease(lease);
  PyObject* memory = PyType_GenericAlloc(mtl_layouts[MEMORY].type, 0);  // may collect garbage
  if (!memory) {
    Py_DecRef(object);
    return 0;
  }
  put(memory, MEMORY, MEMORY_LEASE, object);
  put(memory, MEMORY, MEMORY_ADDRESS, new_reference(lease->address));
  put(memory, MEMORY, MEMORY_BOUND, new_reference(lease->buffer));
  put(memory, MEMORY, MEMORY_DEVICE, new_reference(device));
  put(memory, MEMORY, MEMORY_SHARING, new_reference(zero_));
  return memory;
}

bool mtl_address_of(PyObject* memory, uint64_t* address) {
  PyObject *known = get(memory, MEMORY, MEMORY_ADDRESS), *object = get(memory, MEMORY, MEMORY_LEASE);
  const struct lease* lease = type_of(object) == lease_type ? (const void*)object : 0;
  if (!lease || lease->address != known)
    return known != &_Py_NoneStruct && as_word(known, address);
  *address = lease->word;
  return true;
}

bool mtl_is_on_host(PyObject* lease) {
  return type_of(lease) == lease_type && ((struct lease*)lease)->bucket->pool->is_on_host;
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

static struct bucket* bucket_of(PyObject* pool, PyObject* size) {
  return mtl_bucket_of(PyCapsule_GetPointer(pool, POOL), size);
}

// take(bytes): a free buffer of a size, or None.
static PyObject* take_function(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  struct bucket* bucket = bucket_of(self, args[0]);
  struct lease* lease = bucket ? take(bucket) : 0;
  if (!lease) return none_unless_raised();
  PyObject* buffer = new_reference(lease->buffer);
  free_lease(lease);
  return buffer;
}

// lease(buffer): a lease, with whose last reference the buffer returns to the pool.
static PyObject* lease_function(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  PyObject *size = PyObject_GetAttr(args[0], nbytes_), *address = 0;
  struct bucket* bucket = size ? bucket_of(self, size) : 0;
  drop(size);
  if (bucket) address = PyObject_GetAttr(args[0], address_);
  uint64_t word;
  const bool has_word = address && as_word(address, &word);
  struct lease* lease = has_word ? (void*)PyType_GenericAlloc(lease_type, 0) : 0;
  if (!lease) {
    drop(address);
    return 0;
  }
  lease->bucket = bucket, lease->buffer = new_reference(args[0]), lease->address = address, lease->word = word;
  begin_lease(lease);
  return (PyObject*)lease;
}

// memory(bytes): a new Memory of a size of the pool.
static PyObject* memory_function(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  struct bucket* bucket = bucket_of(self, args[0]);
  return bucket ? mtl_new_memory(bucket) : 0;
}

static PyMethodDef memory_definition = {"memory", memory_function, METH_FASTCALL, 0};
static PyMethodDef take_definition = {"take", take_function, METH_FASTCALL, 0};
static PyMethodDef lease_definition = {"lease", lease_function, METH_FASTCALL, 0};

static bool prepare(void) {
  static PyType_Slot slots[] = {{Py_tp_dealloc, (void*)end_lease}, {0, 0}};
  static PyType_Spec spec = {"metalloid.arrays.native.Lease", sizeof(struct lease), 0,
                             Py_TPFLAGS_DEFAULT, slots};
  if (lease_type) return true;
  zero_ = PyLong_FromLong(0);
  address_ = PyUnicode_InternFromString("address");
  failure_ = PyUnicode_InternFromString("failure");
  nbytes_ = PyUnicode_InternFromString("nbytes");
  pending_ = PyUnicode_InternFromString("_pending");
  wait_ = PyUnicode_InternFromString("wait");
  lease_type = PyType_FromSpec(&spec);
  return lease_type;
}

// The address of a pool, which lives as long as the process, and the functions `take`, `lease` and
// `memory`.
MTL_EXPORT PyObject* mtl_new_pool(PyObject* device, PyObject* buckets, int64_t* counters,
                                 bool is_on_host) {
  if (!prepare()) return 0;
  struct pool* pool = malloc(sizeof *pool);
  if (!pool) return new_reference(&_Py_NoneStruct);
  *pool = (struct pool){new_reference(device), new_reference(buckets), counters, is_on_host};
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
