// Runs of a plan whose launches are bound: takes memory for the results, writes addresses, and runs.
#include "plan_run.h"

enum { ALIGNMENT = 64, MAX_OUTCOME_BYTES = 256 };

static PyObject *jobs_, *recording_;

void mtl_intern_names(void) {
  if (jobs_) return;
  recording_ = PyUnicode_InternFromString("recording");
  jobs_ = PyUnicode_InternFromString("jobs");
}

bool mtl_leaf_address(PyObject* node, PyObject* kind, uint64_t* address) {
  PyObject* memory = get(node, NODE, NODE_MEMORY);
  if (get(node, NODE, NODE_KIND) != kind || !is_instance(memory, MEMORY)) return false;
  PyObject *known = get(memory, MEMORY, MEMORY_ADDRESS), *data = get(node, NODE, NODE_DATA);
  if (known == &_Py_NoneStruct || PyLong_AsLongLong(PyTuple_GetItem(data, 1))) return false;
  return as_word(known, address) && *address % ALIGNMENT == 0;
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

static bool take_results(PyObject* plan, uint64_t* addresses, PyObject** memories) {
  const struct plan* head = plan_head(plan);
  PyObject* sizes = PyTuple_GetItem(plan, PLAN_SIZES);
  for (uint64_t i = 0; i < head->results; i++) {
    memories[i] = mtl_new_memory(head->pool, PyTuple_GetItem(sizes, (Py_ssize_t)i));
    if (memories[i] && as_word(get(memories[i], MEMORY, MEMORY_ADDRESS), &addresses[head->leaves + i]))
      continue;
    for (uint64_t k = 0; k <= i; k++) drop(memories[k]);
    return false;
  }
  return true;
}

// Writes the words, and runs. The number of launches that have succeeded; -1 with an error.
static int64_t run(PyObject* plan, PyObject* frame, const uint64_t* addresses, void* outcome) {
  const struct plan* head = plan_head(plan);
  PyObject* jobs = PyObject_GetAttr(frame, jobs_);
  uint64_t* words = jobs ? (uint64_t*)PyByteArray_AsString(jobs) : 0;
  if (!words) return -1;
  for (uint64_t i = 0; i < head->word_count; i++)
    words[head->words[i].word] = addresses[head->words[i].address];
  void* thread = PyEval_SaveThread();
  const uint32_t done = head->run(words, (uint32_t)head->launches, outcome);
  PyEval_RestoreThread(thread);
  Py_DecRef(jobs);
  return done;
}

bool mtl_run_plan(PyObject* plan, uint64_t* addresses,
                  bool (*pack)(PyObject* plan, PyObject* frame, void* numbers), void* numbers,
                  PyObject** memories) {
  const struct plan* head = plan_head(plan);
  if (!is(PyTuple_GetItem(plan, PLAN_DEVICE), recording_, &_Py_NoneStruct)) return false;
  if (!take_results(plan, addresses, memories)) return false;
  PyObject *frames = PyTuple_GetItem(plan, PLAN_FRAMES), *frame = take_frame(frames);
  _Alignas(16) char outcome[MAX_OUTCOME_BYTES];
  int64_t done = -1;
  if (frame) {
    if (!pack || pack(plan, frame, numbers)) done = run(plan, frame, addresses, outcome);
    PyList_Append(frames, frame);
    Py_DecRef(frame);
  }
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
