// Runs of a plan whose launches are bound: takes memory for the results, writes addresses, and runs.
#include "plan_run.h"

#include <stdlib.h>

// The items of a plan (`RepeatedPlan.native`).
enum { PLAN_HEAD, PLAN_DEVICE, PLAN_SIZES, PLAN_FRAMES, PLAN_FAIL, PLAN_PACK, PLAN_STREAM };
enum { MAX_OUTCOME_BYTES = 256 };

static const char PLAN[] = "metalloid.plan";
static PyObject *jobs_, *numbers_, *params_, *recording_, *run_frame_;

bool mtl_memory_address(const struct plan* plan, PyObject* node, PyObject* kind, uint64_t* address) {
  PyObject* memory = get(node, NODE, NODE_MEMORY);
  if (get(node, NODE, NODE_KIND) != kind || !is_instance(memory, MEMORY)) return false;
  const bool is_own = get(memory, MEMORY, MEMORY_LEASE) != &_Py_NoneStruct;
  if (!is_own && has_stream(plan)) return false;
  return mtl_address_of(memory, address);
}

bool mtl_pack_by_python(struct plan* plan, PyObject* frame, PyObject* numbers) {
  PyObject* packed = PyObject_CallFunctionObjArgs(plan->pack, frame, numbers, (void*)0);
  drop(packed);
  return packed;
}

const struct number* mtl_numbers_of(PyObject* frame, size_t* count) {
  PyObject* bytes = PyObject_GetAttr(frame, numbers_);
  const bool is_native = bytes && bytes != &_Py_NoneStruct;
  const struct number* numbers = is_native ? (const void*)PyBytes_AsString(bytes) : 0;
  if (numbers) *count = (size_t)PyBytes_Size(bytes) / sizeof *numbers;
  drop(bytes);  // which the frame holds
  return numbers;
}

bool mtl_write_number(const struct number* number, PyObject* value) {
  uint64_t bits = 0;
  if (!bits_of(number->kind, number->bytes, value, &bits)) return false;
  memcpy((void*)(uintptr_t)number->address, &bits, number->bytes);
  return true;
}

// ---- frames: a run has one that no other thread uses

static uint64_t* words_of(PyObject* frame) {
  PyObject* jobs = PyObject_GetAttr(frame, jobs_);
  uint64_t* words = jobs ? (uint64_t*)PyByteArray_AsString(jobs) : 0;
  drop(jobs);  // which the frame holds
  return words;
}

static PyObject* take_frame(struct plan* plan, uint64_t** words) {
  PyObject* frame = plan->frame;
  if (frame) {
    plan->frame = 0;
    *words = plan->words;
    return frame;
  }
  const Py_ssize_t count = PyList_Size(plan->frames);
  if (count < 1) return 0;
  frame = new_reference(PyList_GetItem(plan->frames, count - 1));
  if (!PyList_SetSlice(plan->frames, count - 1, count, 0) && (*words = words_of(frame))) return frame;
  Py_DecRef(frame);
  return 0;
}

static void give_frame_back(struct plan* plan, PyObject* frame, uint64_t* words) {
  if (plan->frame) {
    PyList_Append(plan->frames, frame);
    Py_DecRef(frame);
  } else {
    plan->frame = frame;
    plan->words = words;
  }
}

// ---- runs

static bool take_memory(struct plan* plan, uint64_t* addresses, PyObject** memories) {
  const struct plan_head* head = plan->head;
  for (uint64_t i = 0; i < head->results + head->scratch; i++) {
    memories[i] = mtl_new_memory(plan->buckets[i]);
    if (memories[i] && mtl_address_of(memories[i], &addresses[head->leaves + i])) continue;
    for (uint64_t k = 0; k <= i; k++) drop(memories[k]);
    return false;
  }
  return true;
}

// Writes the addresses of parameters that have been copied to the device, and of those that it copies.
static bool write_params(PyObject* stream, PyObject* frame, uint64_t* words) {
  PyObject* params = PyObject_GetAttr(frame, params_);
  bool is_good = params;
  for (Py_ssize_t i = 0; is_good && i < PyTuple_Size(params); i++) {
    PyObject *param = PyTuple_GetItem(params, i), *memory = PyTuple_GetItem(param, 1);
    PyObject* key = PyBytes_FromStringAndSize(PyByteArray_AsString(memory), PyByteArray_Size(memory));
    PyObject* address =
        key ? PyObject_GetItem(PyTuple_GetItem(stream, STREAM_CONSTANTS), key) : 0;
    is_good = address && as_word(address, &words[PyLong_AsLongLong(PyTuple_GetItem(param, 0))]);
    drop(address), drop(key);
  }
  drop(params);
  return is_good;
}

struct run {
  struct plan* plan;
  const uint64_t* addresses;
  bool (*pack)(struct plan* plan, PyObject* frame, void* numbers);
  void *numbers, *outcome;
  PyObject* observer;  // runs the launches of a frame instead (`LaunchRecorder.run_frame`); or null
};

static int64_t run_observed(const struct run* run, PyObject* frame) {
  PyObject* finished = PyObject_CallFunctionObjArgs(run->observer, frame, (void*)0);
  drop(finished);
  return finished ? (int64_t)run->plan->head->launches : -1;
}

// Writes the words, and runs. The number of launches that have succeeded; -1 with an error.
static int64_t run_with(const struct run* run, PyObject* frame, uint64_t* words) {
  struct plan* plan = run->plan;
  const struct plan_head* head = plan->head;
  if (run->pack && !run->pack(plan, frame, run->numbers)) return -1;
  if (has_stream(plan) && !write_params(plan->stream, frame, words)) return -1;
  for (uint64_t i = 0; i < head->word_count; i++)
    words[head->words[i].word] = run->addresses[head->words[i].address];
  if (run->observer) return run_observed(run, frame);
  void* thread = PyEval_SaveThread();
  const int64_t done = head->run(words, (uint32_t)head->launches, run->outcome);
  PyEval_RestoreThread(thread);
  return done;
}

static int64_t run_frame(const struct run* run) {
  uint64_t* words;
  PyObject* frame = take_frame(run->plan, &words);
  if (!frame) return -1;
  const int64_t done = run_with(run, frame, words);
  give_frame_back(run->plan, frame, words);
  return done;
}

// Records that the launches write to the results, and to leaves.
static bool finish(PyObject* stream, PyObject* const* memories, uint64_t count,
                   PyObject* overwritten) {
  PyObject *list = PyList_New((Py_ssize_t)count), *finished = 0;
  for (uint64_t i = 0; list && i < count; i++)
    PyList_SetItem(list, (Py_ssize_t)i, new_reference(memories[i]));
  const Py_ssize_t end = (Py_ssize_t)count;
  if (list && (!overwritten || !PyList_SetSlice(list, end, end, overwritten)))
    finished = PyObject_CallFunctionObjArgs(PyTuple_GetItem(stream, STREAM_FINISH), list, (void*)0);
  drop(list), drop(finished);
  return finished;
}

// Runs with the lock of the device.
static int64_t run_in_stream(const struct run* run, PyObject* const* memories,
                             PyObject* overwritten) {
  const struct plan_head* head = run->plan->head;
  PyObject *stream = run->plan->stream, *type, *value, *trace;
  PyObject* locked = PyObject_CallNoArgs(PyTuple_GetItem(stream, STREAM_ACQUIRE));
  if (!locked) return -1;
  Py_DecRef(locked);
  int64_t done = -1;
  PyObject* is_ready = PyObject_CallNoArgs(PyTuple_GetItem(stream, STREAM_IS_READY));
  if (is_ready == &_Py_TrueStruct) done = run_frame(run);
  if (done == (int64_t)head->launches && !finish(stream, memories, head->results, overwritten))
    done = -1;
  drop(is_ready);
  PyErr_Fetch(&type, &value, &trace);
  PyObject* released = PyObject_CallNoArgs(PyTuple_GetItem(stream, STREAM_RELEASE));
  drop(released);
  if (type) PyErr_Restore(type, value, trace);
  return done;
}

bool mtl_is_recording(const struct plan* plan) {
  PyObject* recorder = PyDict_GetItemWithError(plan->device, recording_);
  return recorder && recorder != &_Py_NoneStruct;
}

// What looks at the launches of runs; null if the recorder has none. A new reference.
static PyObject* observer_of(const struct plan* plan) {
  PyObject* recorder = PyDict_GetItemWithError(plan->device, recording_);
  PyObject* observer = PyObject_GetAttr(recorder, run_frame_);
  if (!observer) PyErr_Clear();
  if (observer != &_Py_NoneStruct) return observer;
  Py_DecRef(observer);
  return 0;
}

bool mtl_run_plan(struct plan* plan, uint64_t* addresses,
                  bool (*pack)(struct plan* plan, PyObject* frame, void* numbers), void* numbers,
                  PyObject** memories, PyObject* overwritten) {
  const struct plan_head* head = plan->head;
  PyObject* observer = 0;
  if (mtl_is_recording(plan) && !(observer = observer_of(plan))) return false;
  if (!take_memory(plan, addresses, memories)) {
    drop(observer);
    return false;
  }
  _Alignas(16) char outcome[MAX_OUTCOME_BYTES];
  const struct run run = {plan, addresses, pack, numbers, outcome, observer};
  const int64_t done =
      has_stream(plan) ? run_in_stream(&run, memories, overwritten) : run_frame(&run);
  drop(observer);
  for (uint64_t i = 0; i < head->scratch; i++) Py_DecRef(memories[head->results + i]);
  if (done == (int64_t)head->launches) return true;
  for (uint64_t i = 0; i < head->results; i++) drop(memories[i]);
  if (done < 0) return false;
  PyObject *bytes = PyBytes_FromStringAndSize(outcome, sizeof outcome), *index = PyLong_FromLong(done);
  PyObject* raised = 0;
  if (bytes && index) raised = PyObject_CallFunctionObjArgs(plan->fail, bytes, index, (void*)0);
  drop(bytes), drop(index), drop(raised);
  return false;
}

// ---- plans

struct plan* mtl_plan_of(PyObject* capsule) { return PyCapsule_GetPointer(capsule, PLAN); }

static void delete(PyObject* capsule) {
  struct plan* plan = mtl_plan_of(capsule);
  drop(plan->frame);
  Py_DecRef(plan->items);
  free(plan);
}

static bool find_buckets(struct plan* plan) {
  PyObject* sizes = PyTuple_GetItem(plan->items, PLAN_SIZES);
  for (Py_ssize_t i = 0; i < PyTuple_Size(sizes); i++)
    if (!(plan->buckets[i] = mtl_bucket_of(plan->head->pool, PyTuple_GetItem(sizes, i)))) return false;
  return true;
}

// From the items of a plan.
MTL_EXPORT PyObject* mtl_new_plan(PyObject* items) {
  if (!jobs_) {
    recording_ = PyUnicode_InternFromString("recording");
    run_frame_ = PyUnicode_InternFromString("run_frame");
    params_ = PyUnicode_InternFromString("params");
    numbers_ = PyUnicode_InternFromString("numbers");
    jobs_ = PyUnicode_InternFromString("jobs");
  }
  const struct plan_head* head = (const void*)PyBytes_AsString(PyTuple_GetItem(items, PLAN_HEAD));
  const size_t buckets = head->results + head->scratch;
  struct plan* plan = malloc(sizeof *plan + buckets * sizeof *plan->buckets);
  PyObject* capsule = plan ? PyCapsule_New(plan, PLAN, delete) : 0;
  if (!capsule) {
    free(plan);
    return none_unless_raised();
  }
  *plan = (struct plan){
      .items = new_reference(items),
      .head = head,
      .device = PyTuple_GetItem(items, PLAN_DEVICE),
      .frames = PyTuple_GetItem(items, PLAN_FRAMES),
      .fail = PyTuple_GetItem(items, PLAN_FAIL),
      .pack = PyTuple_GetItem(items, PLAN_PACK),
      .stream = PyTuple_GetItem(items, PLAN_STREAM),
  };
  if (find_buckets(plan)) return capsule;
  Py_DecRef(capsule);
  return 0;
}
