// Runs of a plan whose launches are bound: takes memory for the results, writes addresses, and runs.
#include "plan_run.h"

enum { MAX_OUTCOME_BYTES = 256 };

static PyObject *jobs_, *params_, *recording_;

void mtl_intern_names(void) {
  if (jobs_) return;
  recording_ = PyUnicode_InternFromString("recording");
  params_ = PyUnicode_InternFromString("params");
  jobs_ = PyUnicode_InternFromString("jobs");
}

bool mtl_memory_address(PyObject* plan, PyObject* node, PyObject* kind, uint64_t* address) {
  PyObject* memory = get(node, NODE, NODE_MEMORY);
  if (get(node, NODE, NODE_KIND) != kind || !is_instance(memory, MEMORY)) return false;
  const bool is_own = get(memory, MEMORY, MEMORY_LEASE) != &_Py_NoneStruct;
  if (!is_own && PyTuple_GetItem(plan, PLAN_STREAM) != &_Py_NoneStruct) return false;
  PyObject* known = get(memory, MEMORY, MEMORY_ADDRESS);
  return known != &_Py_NoneStruct && as_word(known, address);
}

bool mtl_pack_by_python(PyObject* plan, PyObject* frame, PyObject* numbers) {
  PyObject* packed =
      PyObject_CallFunctionObjArgs(PyTuple_GetItem(plan, PLAN_PACK), frame, numbers, (void*)0);
  drop(packed);
  return packed;
}

// Takes a frame that no other thread uses.
static PyObject* take_frame(PyObject* frames) {
  const Py_ssize_t count = PyList_Size(frames);
  if (count < 1) return 0;
  PyObject* frame = new_reference(PyList_GetItem(frames, count - 1));
  if (!PyList_SetSlice(frames, count - 1, count, 0)) return frame;
  Py_DecRef(frame);
  return 0;
}

static bool take_memory(PyObject* plan, uint64_t* addresses, PyObject** memories) {
  const struct plan* head = plan_head(plan);
  PyObject* sizes = PyTuple_GetItem(plan, PLAN_SIZES);
  for (uint64_t i = 0; i < head->results + head->scratch; i++) {
    memories[i] = mtl_new_memory(head->pool, PyTuple_GetItem(sizes, (Py_ssize_t)i));
    if (memories[i] && as_word(get(memories[i], MEMORY, MEMORY_ADDRESS), &addresses[head->leaves + i]))
      continue;
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

// Writes the words, and runs. The number of launches that have succeeded; -1 with an error.
static int64_t run(PyObject* plan, PyObject* frame, const uint64_t* addresses, void* outcome) {
  const struct plan* head = plan_head(plan);
  PyObject *stream = PyTuple_GetItem(plan, PLAN_STREAM), *jobs = PyObject_GetAttr(frame, jobs_);
  uint64_t* words = jobs ? (uint64_t*)PyByteArray_AsString(jobs) : 0;
  int64_t done = -1;
  if (words && (stream == &_Py_NoneStruct || write_params(stream, frame, words))) {
    for (uint64_t i = 0; i < head->word_count; i++)
      words[head->words[i].word] = addresses[head->words[i].address];
    void* thread = PyEval_SaveThread();
    done = head->run(words, (uint32_t)head->launches, outcome);
    PyEval_RestoreThread(thread);
  }
  drop(jobs);
  return done;
}

struct call {
  PyObject* plan;
  const uint64_t* addresses;
  bool (*pack)(PyObject* plan, PyObject* frame, void* numbers);
  void *numbers, *outcome;
};

static int64_t run_frame(const struct call* call) {
  PyObject *plan = call->plan, *frames = PyTuple_GetItem(plan, PLAN_FRAMES);
  PyObject* frame = take_frame(frames);
  if (!frame) return -1;
  int64_t done = -1;
  if (!call->pack || call->pack(plan, frame, call->numbers))
    done = run(plan, frame, call->addresses, call->outcome);
  PyList_Append(frames, frame);
  Py_DecRef(frame);
  return done;
}

// Records that the launches write to the results.
static bool finish(PyObject* stream, PyObject* const* memories, uint64_t count) {
  PyObject *list = PyList_New((Py_ssize_t)count), *finished = 0;
  for (uint64_t i = 0; list && i < count; i++)
    PyList_SetItem(list, (Py_ssize_t)i, new_reference(memories[i]));
  if (list)
    finished = PyObject_CallFunctionObjArgs(PyTuple_GetItem(stream, STREAM_FINISH), list, (void*)0);
  drop(list), drop(finished);
  return finished;
}

// Runs with the lock of the device.
static int64_t run_in_stream(const struct call* call, PyObject* const* memories) {
  const struct plan* head = plan_head(call->plan);
  PyObject *stream = PyTuple_GetItem(call->plan, PLAN_STREAM), *type, *value, *trace;
  PyObject* locked = PyObject_CallNoArgs(PyTuple_GetItem(stream, STREAM_ACQUIRE));
  if (!locked) return -1;
  Py_DecRef(locked);
  int64_t done = -1;
  PyObject* is_ready = PyObject_CallNoArgs(PyTuple_GetItem(stream, STREAM_IS_READY));
  if (is_ready == &_Py_TrueStruct) done = run_frame(call);
  if (done == (int64_t)head->launches && !finish(stream, memories, head->results)) done = -1;
  drop(is_ready);
  PyErr_Fetch(&type, &value, &trace);
  PyObject* released = PyObject_CallNoArgs(PyTuple_GetItem(stream, STREAM_RELEASE));
  drop(released);
  if (type) PyErr_Restore(type, value, trace);
  return done;
}

bool mtl_run_plan(PyObject* plan, uint64_t* addresses,
                  bool (*pack)(PyObject* plan, PyObject* frame, void* numbers), void* numbers,
                  PyObject** memories) {
  const struct plan* head = plan_head(plan);
  if (!is(PyTuple_GetItem(plan, PLAN_DEVICE), recording_, &_Py_NoneStruct)) return false;
  if (!take_memory(plan, addresses, memories)) return false;
  _Alignas(16) char outcome[MAX_OUTCOME_BYTES];
  const struct call call = {plan, addresses, pack, numbers, outcome};
  const bool has_stream = PyTuple_GetItem(plan, PLAN_STREAM) != &_Py_NoneStruct;
  const int64_t done = has_stream ? run_in_stream(&call, memories) : run_frame(&call);
  for (uint64_t i = 0; i < head->scratch; i++) Py_DecRef(memories[head->results + i]);
  if (done == (int64_t)head->launches) return true;
  for (uint64_t i = 0; i < head->results; i++) drop(memories[i]);
  if (done < 0) return false;
  PyObject *bytes = PyBytes_FromStringAndSize(outcome, sizeof outcome), *index = PyLong_FromLong(done);
  PyObject* raised = 0;
  if (bytes && index)
    raised = PyObject_CallFunctionObjArgs(PyTuple_GetItem(plan, PLAN_FAIL), bytes, index, (void*)0);
  drop(bytes), drop(index), drop(raised);
  return false;
}
