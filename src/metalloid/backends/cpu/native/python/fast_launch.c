// The fast launch path: binds and runs launches whose arguments are whole arrays, buffers and numbers.
// Other launches, and all errors, are left to the general path in Python. That one touches much more
// memory: after a kernel that has evicted the caches it takes 25 us, and this one a few.
#include "runtime.h"
#include "values.h"

// The items of a plan (fast_launch.py).
enum { HEAD, SIZES, JOBS, DEVICE, SETTINGS, ARRAY, INTEGERS, OTHER_NUMBERS, DTYPES, EVENT, FAIL,
       BUFFER, BINDERS, QUEUED };

enum { MAX_WORDS = 32, NUMBER_BYTES = 16, DESCRIPTOR_WORDS = sizeof(mtl_descriptor) / 8 };

struct parameter {
  uint64_t position, bytes, least_bytes, alignment;  // of its word; of an element and an array
  uint32_t kind, number_bytes;  // of a number that may stand here: 'f', 'i', 'u', or 0
  uint64_t writes, is_read;     // is_read: proofs depend on what a buffer contains
};

struct head {
  int (*run)(const void* job, mtl_outcome* outcome);
  uint64_t (*submit)(const void* job);
  int (*wait)(uint64_t ticket, double seconds, mtl_outcome* outcome);
  int (*is_inside)(const void* ranges, const void* job, uint8_t* outside);
  int (*is_idle)(void);
  const void* ranges;  // 0 if there is nothing to prove
  uint64_t words, extents, count, waits;  // extents: as many as words, or none
  struct parameter parameters[];
};

struct job {
  uint64_t descriptor[DESCRIPTOR_WORDS], words[2 * MAX_WORDS];  // an mtl_descriptor, its arguments
  char (*numbers)[NUMBER_BYTES];  // aligned memory, as long as the launch
  PyObject* sizes;                // grid and threadgroup; borrowed
  PyObject* memories[MAX_WORDS];  // of arrays of other types, which may be replaced meanwhile
  uint32_t memory_count;
};

// Binds an array to a parameter; see NATIVE_BINDERS in launches.py.
typedef PyObject* binder(PyObject* array, PyObject* device, PyObject* dtype, bool writes,
                         uint64_t* address, uint64_t* bytes);

static PyObject *address_, *device_, *dtype_, *failure_, *is_fresh_, *nbytes_, *pending_, *observes_,
    *recording_, *strict_barriers_;

static bool fits(const struct parameter* p, uint64_t address, uint64_t bytes) {
  return bytes && bytes % p->bytes == 0 && bytes >= p->least_bytes && address % p->alignment == 0;
}

static bool bind_array(PyObject* dtype, const struct parameter* p, PyObject* array,
                       uint64_t* word, uint64_t* extent) {
  Py_buffer view;
  if (dtype == &_Py_NoneStruct || !is(array, dtype_, dtype)) return false;
  if (PyObject_GetBuffer(array, &view, p->writes ? PyBUF_WRITABLE : PyBUF_SIMPLE)) return false;
  const uint64_t bytes = *extent = (uint64_t)view.bytes;
  *word = (uint64_t)view.memory;
  PyBuffer_Release(&view);  // the caller's array keeps the memory
  return fits(p, *word, bytes);
}

static bool number_of(PyObject* object, PyObject* name, uint64_t* number) {
  PyObject* attribute = PyObject_GetAttr(object, name);
  const bool is_number = attribute && as_word(attribute, number);
  drop(attribute);
  return is_number;
}

static bool bind_buffer(PyObject* plan, const struct parameter* p, PyObject* buffer, uint64_t* word,
                        uint64_t* extent) {
  if (!is(buffer, device_, PyTuple_GetItem(plan, DEVICE))) return false;
  if (!is(buffer, failure_, &_Py_NoneStruct)) return false;
  if (p->writes && !is(buffer, is_fresh_, &_Py_FalseStruct) &&
      PyObject_SetAttr(buffer, is_fresh_, &_Py_FalseStruct))
    return false;
  return number_of(buffer, nbytes_, extent) && number_of(buffer, address_, word) &&
         fits(p, *word, *extent);
}

static bool bind_other(PyObject* plan, const struct parameter* p, PyObject* dtype, PyObject* array,
                       PyObject* type, struct job* job, uint64_t* word, uint64_t* extent) {
  PyObject* known = PyDict_GetItemWithError(PyTuple_GetItem(plan, BINDERS), type);
  uint64_t function;
  if (!known || dtype == &_Py_NoneStruct || !as_word(known, &function)) return false;
  binder* bind = (binder*)(uintptr_t)function;
  PyObject* memory = bind(array, PyTuple_GetItem(plan, DEVICE), dtype, p->writes, word, extent);
  if (memory) job->memories[job->memory_count++] = memory;
  return memory && fits(p, *word, *extent);
}

static bool bind_number(const struct parameter* p, PyObject* number, bool is_integer, char* memory,
                        uint64_t* word) {
  uint64_t bits = 0;
  if (!p->kind || (!is_integer && p->kind != 'f')) return false;
  if (!bits_of(p->kind, p->number_bytes, number, &bits)) return false;
  memcpy(memory, &bits, sizeof bits);
  *word = (uint64_t)memory;
  return true;
}

// Whether an argument is an array; without one a launch is asynchronous by default.
static bool has_array(PyObject* plan, const struct head* head, PyObject* arguments) {
  for (uint64_t i = 0; i < head->count; i++) {
    PyObject* type = PyObject_Type(PyTuple_GetItem(arguments, i));
    Py_DecRef(type);  // which the value holds
    if (type != PyTuple_GetItem(plan, BUFFER) && !contains(PyTuple_GetItem(plan, INTEGERS), type) &&
        !contains(PyTuple_GetItem(plan, OTHER_NUMBERS), type))
      return true;
  }
  return false;
}

// What a queued launch writes is not there yet for a proof that reads it.
static bool may_read(const struct head* head, const struct parameter* p) {
  return !(head->ranges && p->is_read) || head->is_idle();
}

static bool bind(PyObject* plan, const struct head* head, PyObject* arguments, struct job* job) {
  for (uint64_t i = 0; i < head->count; i++) {
    const struct parameter* p = &head->parameters[i];
    PyObject *value = PyTuple_GetItem(arguments, i), *type = PyObject_Type(value);
    Py_DecRef(type);  // which the value holds
    uint64_t* word = &job->words[p->position];
    uint64_t extent = p->number_bytes;
    PyObject* dtype = PyTuple_GetItem(PyTuple_GetItem(plan, DTYPES), i);
    const bool is_integer = contains(PyTuple_GetItem(plan, INTEGERS), type);
    if (type == PyTuple_GetItem(plan, ARRAY)) {
      if (!bind_array(dtype, p, value, word, &extent)) return false;
    } else if (is_integer || contains(PyTuple_GetItem(plan, OTHER_NUMBERS), type)) {
      if (!bind_number(p, value, is_integer, job->numbers[i], word)) return false;
    } else if (type == PyTuple_GetItem(plan, BUFFER)) {
      if (!may_read(head, p) || !bind_buffer(plan, p, value, word, &extent)) return false;
    } else {
      if (!may_read(head, p) || !bind_other(plan, p, dtype, value, type, job, word, &extent))
        return false;
    }
    if (head->extents) job->words[head->words + p->position] = extent;
  }
  return true;
}

// Whether the launch can take the fast path; then the job is complete.
static bool prepare(PyObject* plan, PyObject* const* given, struct job* job) {
  const struct head* head = (const void*)PyBytes_AsString(PyTuple_GetItem(plan, HEAD));
  PyObject *arguments = given[0], *settings = PyTuple_GetItem(plan, SETTINGS);
  if ((uint64_t)PyTuple_Size(arguments) != head->count) return false;
  if (!runs_at_once(PyTuple_GetItem(plan, DEVICE), recording_, observes_)) return false;
  if (head->waits && !is(settings, strict_barriers_, &_Py_TrueStruct)) return false;
  PyObject* sizes = sizes_of(PyTuple_GetItem(plan, SIZES), given[1], given[2]);
  PyObject* known = sizes ? PyDict_GetItemWithError(PyTuple_GetItem(plan, JOBS), sizes) : 0;
  if (!known) return false;
  job->sizes = sizes;
  memcpy(&job->descriptor, PyBytes_AsString(known), sizeof job->descriptor);
  memset(job->words, 0, 8 * (head->words + head->extents));
  return bind(plan, head, arguments, job) &&
         (!head->ranges || head->is_inside(head->ranges, job, 0));
}

// Keeps the exception of Ctrl-C; other exceptions are cleared, for the general path.
static PyObject* none_unless_interrupted(void) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (type && !PyErr_GivenExceptionMatches(type, PyExc_Exception)) {
    PyErr_Restore(type, value, trace);
    return 0;
  }
  drop(type), drop(value), drop(trace);
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}

static PyObject* run(PyObject* plan, PyObject* const* given, struct job* job) {
  const struct head* head = (const void*)PyBytes_AsString(PyTuple_GetItem(plan, HEAD));
  _Alignas(NUMBER_BYTES) char numbers[MAX_WORDS][NUMBER_BYTES];
  job->numbers = numbers;
  if (!prepare(plan, given, job)) return none_unless_interrupted();
  mtl_outcome outcome;
  void* thread = PyEval_SaveThread();
  const int status = head->run(job, &outcome);
  PyEval_RestoreThread(thread);
  PyObject* failure = status ? PyBytes_FromStringAndSize((const char*)&outcome, sizeof outcome)
                          : PyFloat_FromDouble(outcome.seconds);
  if (!failure) return 0;
  PyObject* called = PyTuple_GetItem(plan, status ? FAIL : EVENT);
  PyObject* result = status ? PyObject_CallFunctionObjArgs(called, failure, given[1], given[2], (void*)0)
                            : PyObject_CallFunctionObjArgs(called, failure, (void*)0);
  Py_DecRef(failure);
  return result;
}

static bool mark_used(PyObject* plan, PyObject* arguments, PyObject* event) {
  for (Py_ssize_t i = 0, count = PyTuple_Size(arguments); i < count; i++) {
    PyObject *value = PyTuple_GetItem(arguments, i), *type = PyObject_Type(value);
    Py_DecRef(type);  // which the value holds
    if (type == PyTuple_GetItem(plan, BUFFER) && PyObject_SetAttr(value, pending_, event)) return false;
  }
  return true;
}

// Queues a launch on buffers and numbers. Its memory, which the event holds, are the numbers and the words.
static PyObject* queue(PyObject* plan, PyObject* const* given, struct job* job) {
  const struct head* head = (const void*)PyBytes_AsString(PyTuple_GetItem(plan, HEAD));
  const size_t number_bytes = head->count * NUMBER_BYTES, word_bytes = 8 * head->words;
  PyObject* memory = PyBytes_FromStringAndSize(0, (Py_ssize_t)(number_bytes + word_bytes));
  char* bytes = memory ? PyBytes_AsString(memory) : 0;
  job->numbers = (char(*)[NUMBER_BYTES])bytes;
  const bool is_aligned = bytes && (uintptr_t)bytes % NUMBER_BYTES == 0;
  const uint64_t ticket = is_aligned && prepare(plan, given, job) ? head->submit(job) : 0;
  if (!ticket) {
    drop(memory);
    return none_unless_interrupted();
  }
  memcpy(bytes + number_bytes, job->words, word_bytes);
  PyObject *number = PyLong_FromUnsignedLongLong(ticket), *event = 0;
  if (number)
    event = PyObject_CallFunctionObjArgs(PyTuple_GetItem(plan, QUEUED), number, memory, given[0],
                                         job->sizes, (void*)0);
  drop(number);
  if (!event || !mark_used(plan, given[0], event)) {
    Py_IncRef(memory), Py_IncRef(given[0]);  // for good: the launch uses them
    drop(event);
    event = 0;
  }
  Py_DecRef(memory);
  return event;
}

static PyObject* launch(PyObject* plan, PyObject* const* given, struct job* job) {
  const struct head* head = (const void*)PyBytes_AsString(PyTuple_GetItem(plan, HEAD));
  if (given[3] == &_Py_TrueStruct) return run(plan, given, job);
  if ((uint64_t)PyTuple_Size(given[0]) == head->count) {
    if (!has_array(plan, head, given[0])) return queue(plan, given, job);
    if (given[3] == &_Py_NoneStruct) return run(plan, given, job);
  }
  return none_unless_interrupted();
}

// From the arguments, threads and threadgroup size of Kernel.__call__, and whether it is to wait (None: if
// it uses arrays), to an event; None for the general path.
static PyObject* fast_launch(PyObject* plan, PyObject* const* given, Py_ssize_t count) {
  (void)count;
  struct job job;
  job.memory_count = 0;
  PyObject* event = launch(plan, given, &job);
  for (uint32_t i = 0; i < job.memory_count; i++) Py_DecRef(job.memories[i]);
  return event;
}

static PyMethodDef definition = {"fast_launch", fast_launch, METH_FASTCALL, 0};

MTL_EXPORT PyObject* mtl_fast_launch(PyObject* plan) {
  if (!dtype_) {
    address_ = PyUnicode_InternFromString("address");
    device_ = PyUnicode_InternFromString("device");
    failure_ = PyUnicode_InternFromString("failure");
    is_fresh_ = PyUnicode_InternFromString("is_fresh");
    nbytes_ = PyUnicode_InternFromString("nbytes");
    pending_ = PyUnicode_InternFromString("_pending");
    dtype_ = PyUnicode_InternFromString("dtype");
    observes_ = PyUnicode_InternFromString("observes");
    recording_ = PyUnicode_InternFromString("recording");
    strict_barriers_ = PyUnicode_InternFromString("strict_barriers");
  }
  return PyCFunction_NewEx(&definition, plan, 0);
}
