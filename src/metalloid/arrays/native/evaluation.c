// Evaluations of an expression whose plan has run before, and is bound: other ones are left to Python.
#include "plan_run.h"

// The items of an evaluation (native.py).
enum { EVALUATION_PLAN, EVALUATION_RESULTS, EVALUATION_HAS_NUMBERS, EVALUATION_KIND,
       EVALUATION_NO_ARGS };
enum { RESULT_NODE, RESULT_DATA };

static void replace(PyObject* object, int name, PyObject* value) {
  PyObject** field = slot(object, NODE, name);
  PyObject* old = *field;
  *field = held(value);
  drop(old);
}

// `Node.materialize`.
static void materialize(PyObject* evaluation, PyObject* node, PyObject* memory, PyObject* data) {
  PyObject* args = held(get(node, NODE, NODE_ARGS));
  replace(node, NODE_MEMORY, memory);
  replace(node, NODE_DATA, data);
  replace(node, NODE_KIND, PyTuple_GetItem(evaluation, EVALUATION_KIND));
  replace(node, NODE_FLAGS, get(memory, MEMORY, MEMORY_SHARING));
  replace(node, NODE_ARGS, PyTuple_GetItem(evaluation, EVALUATION_NO_ARGS));
  Py_DecRef(args);  // last: it may free other nodes
}

// From the leaves and nodes of a graph to True, with the results materialized; else None.
static PyObject* evaluate(PyObject* evaluation, PyObject* const* given, Py_ssize_t count) {
  (void)count;
  PyObject *leaves = given[0], *nodes = given[1], *memories[MAX_ADDRESSES];
  PyObject* plan = PyTuple_GetItem(evaluation, EVALUATION_PLAN);
  PyObject* results = PyTuple_GetItem(evaluation, EVALUATION_RESULTS);
  const struct plan* head = plan_head(plan);
  uint64_t addresses[MAX_ADDRESSES];
  if ((uint64_t)PyList_Size(leaves) != head->leaves) return none_unless_raised();
  for (uint64_t i = 0; i < head->leaves; i++)
    if (!mtl_leaf_address(PyList_GetItem(leaves, (Py_ssize_t)i),
                          PyTuple_GetItem(evaluation, EVALUATION_KIND), &addresses[i]))
      return none_unless_raised();
  const bool has_numbers = PyTuple_GetItem(evaluation, EVALUATION_HAS_NUMBERS) == &_Py_TrueStruct;
  if (!mtl_run_plan(plan, addresses, has_numbers ? nodes : 0, memories)) return none_unless_raised();
  for (uint64_t i = 0; i < head->results; i++) {
    PyObject* result = PyTuple_GetItem(results, (Py_ssize_t)i);
    const long long index = PyLong_AsLongLong(PyTuple_GetItem(result, RESULT_NODE));
    materialize(evaluation, PyList_GetItem(nodes, index), memories[i],
                PyTuple_GetItem(result, RESULT_DATA));
    Py_DecRef(memories[i]);
  }
  return held(&_Py_TrueStruct);
}

static PyMethodDef definition = {"evaluate", evaluate, METH_FASTCALL, 0};

MTL_EXPORT PyObject* mtl_evaluation(PyObject* evaluation) {
  mtl_intern_names();
  return PyCFunction_NewEx(&definition, evaluation, 0);
}
