// Calls of a compiled function whose arguments are like those of an earlier call: arrays of the same
// types and layouts, and numbers. Other calls, and their errors, are left to Python.
#include "plan_run.h"

// The items of a call (native.py).
enum {
  CALL_PLAN, CALL_CHECKS, CALL_LEAVES, CALL_CONSTANTS, CALL_OUTPUTS, CALL_SETTINGS, CALL_VERSION,
  CALL_IS_TUPLE, CALL_IDS, CALL_KIND, CALL_NO_ARGS
};
enum { CHECK_DTYPE, CHECK_SHAPE, CHECK_STRIDES, CHECK_DEVICE };  // of an array; a number has its type
enum { OUTPUT_OWNER, OUTPUT_DTYPE, OUTPUT_SHAPE, OUTPUT_DATA };
enum { MAX_ARGUMENTS = MAX_ADDRESSES, ALIGNMENT = 64 };

static PyObject* version_;

static bool is_like(PyObject* node, PyObject* check) {
  return get(node, NODE, NODE_DTYPE) == PyTuple_GetItem(check, CHECK_DTYPE) &&
         get(node, NODE, NODE_DEVICE) == PyTuple_GetItem(check, CHECK_DEVICE) &&
         is_equal(get(node, NODE, NODE_SHAPE), PyTuple_GetItem(check, CHECK_SHAPE)) &&
         is_equal(PyTuple_GetItem(get(node, NODE, NODE_DATA), 0),
                  PyTuple_GetItem(check, CHECK_STRIDES));
}

// The nodes and numbers of the arguments, in order; borrowed. False for arguments of other kinds.
static bool match(PyObject* call, PyObject* args, PyObject** nodes, PyObject** numbers,
                  Py_ssize_t* number_count) {
  PyObject *checks = PyTuple_GetItem(call, CALL_CHECKS), *kind = PyTuple_GetItem(call, CALL_KIND);
  const Py_ssize_t count = PyTuple_Size(args);
  if (count != PyTuple_Size(checks)) return false;
  Py_ssize_t node_count = 0;
  *number_count = 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *value = PyTuple_GetItem(args, i), *check = PyTuple_GetItem(checks, i);
    PyObject* type = type_of(value);
    if (type == mtl_layouts[ARRAY].type) {
      PyObject* node = get(value, ARRAY, ARRAY_NODE);
      if (type_of(check) != type_of(checks)) return false;  // no tuple: it was a number
      if (!node || get(node, NODE, NODE_KIND) != kind || !is_like(node, check)) return false;
      nodes[node_count++] = node;
    } else {
      if (type != check) return false;
      numbers[(*number_count)++] = value;
    }
  }
  return true;
}

static PyObject* new_array(PyObject* call, PyObject* output, PyObject* const* owners) {
  const long long owner = PyLong_AsLongLong(PyTuple_GetItem(output, OUTPUT_OWNER));
  const struct leaf leaf = {
      .kind = PyTuple_GetItem(call, CALL_KIND),
      .no_args = PyTuple_GetItem(call, CALL_NO_ARGS),
      .ids = PyTuple_GetItem(call, CALL_IDS),
      .dtype = PyTuple_GetItem(output, OUTPUT_DTYPE),
      .shape = PyTuple_GetItem(output, OUTPUT_SHAPE),
      .data = PyTuple_GetItem(output, OUTPUT_DATA),
  };
  return mtl_new_array(mtl_new_leaf(&leaf, owners[owner]));
}

static PyObject* results_of(PyObject* call, PyObject* const* owners) {
  PyObject* outputs = PyTuple_GetItem(call, CALL_OUTPUTS);
  if (PyTuple_GetItem(call, CALL_IS_TUPLE) != &_Py_TrueStruct)
    return new_array(call, PyTuple_GetItem(outputs, 0), owners);
  const Py_ssize_t count = PyTuple_Size(outputs);
  PyObject* results = PyTuple_New(count);
  for (Py_ssize_t i = 0; results && i < count; i++) {
    PyObject* array = new_array(call, PyTuple_GetItem(outputs, i), owners);
    if (array) {
      PyTuple_SetItem(results, i, array);
    } else {
      Py_DecRef(results);
      results = 0;
    }
  }
  return results;
}

// The addresses of the leaves, and their memory.
static bool bind_leaves(PyObject* call, PyObject* const* nodes, uint64_t count, uint64_t* addresses,
                        PyObject** owners) {
  const int64_t* leaves = (const int64_t*)PyBytes_AsString(PyTuple_GetItem(call, CALL_LEAVES));
  PyObject *constants = PyTuple_GetItem(call, CALL_CONSTANTS);
  PyObject *kind = PyTuple_GetItem(call, CALL_KIND);
  for (uint64_t i = 0; i < count; i++) {
    PyObject* node = leaves[i] < 0 ? PyTuple_GetItem(constants, -1 - leaves[i]) : nodes[leaves[i]];
    if (!mtl_memory_address(PyTuple_GetItem(call, CALL_PLAN), node, kind, &addresses[i])) return false;
    if (addresses[i] % ALIGNMENT || PyLong_AsLongLong(PyTuple_GetItem(get(node, NODE, NODE_DATA), 1)))
      return false;
    owners[i] = new_reference(get(node, NODE, NODE_MEMORY));
  }
  return true;
}

static PyObject* tuple_of(PyObject* const* objects, Py_ssize_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple && i < count; i++) PyTuple_SetItem(tuple, i, new_reference(objects[i]));
  return tuple;
}

static bool pack(PyObject* plan, PyObject* frame, void* numbers) {
  return mtl_pack_by_python(plan, frame, numbers);
}

// From the tuple of arguments to the array or the tuple of arrays; None for other calls.
static PyObject* program_call(PyObject* call, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  PyObject *nodes[MAX_ARGUMENTS], *numbers[MAX_ARGUMENTS], *owners[MAX_ADDRESSES] = {0};
  uint64_t addresses[MAX_ADDRESSES];
  Py_ssize_t number_count;
  PyObject* plan = PyTuple_GetItem(call, CALL_PLAN);
  const struct plan* head = plan_head(plan);
  if (!is(PyTuple_GetItem(call, CALL_SETTINGS), version_, PyTuple_GetItem(call, CALL_VERSION)) ||
      !match(call, args[0], nodes, numbers, &number_count))
    return none_unless_raised();
  PyObject *results = 0, *packed = number_count ? tuple_of(numbers, number_count) : 0;
  if ((packed || !number_count) && bind_leaves(call, nodes, head->leaves, addresses, owners) &&
      mtl_run_plan(plan, addresses, packed ? pack : 0, packed, &owners[head->leaves])) {
    results = results_of(call, owners);
    for (uint64_t i = 0; i < head->results; i++) Py_DecRef(owners[head->leaves + i]);
  }
  for (uint64_t i = 0; i < head->leaves; i++) drop(owners[i]);
  drop(packed);
  return results ? results : none_unless_raised();
}

static PyMethodDef definition = {"program_call", program_call, METH_FASTCALL, 0};

MTL_EXPORT PyObject* mtl_program_call(PyObject* call) {
  mtl_intern_names();
  if (!version_) version_ = PyUnicode_InternFromString("_version");
  return PyCFunction_NewEx(&definition, call, 0);
}
