// Calls of a function like an earlier one: the nodes of its results are made without the function. What
// a call must be like, and the nodes, are tuples (numpy/known_calls.py). Other calls are left to Python.
#include "pool.h"

// The items of a known call.
enum {
  CALL_CHECKS, CALL_NAMES, CALL_OPTION_CHECKS, CALL_FIRST, CALL_STEPS, CALL_CONSTANTS, CALL_RESULTS,
  CALL_RANGES, CALL_SETTINGS, CALL_VERSION
};
// Checks of arguments, by the number of their items: an object itself; a type and a value of it; a
// type, checks of the items of a list or a tuple, and None; an array in memory; an expression.
enum { IS_OBJECT = 1, IS_EQUAL, IS_SEQUENCE, IS_ARRAY, IS_EXPRESSION = 6 };
enum { CHECK_TYPE, CHECK_VALUE, CHECK_ITEMS = 1 };
enum { CHECK_DTYPE, CHECK_SHAPE, CHECK_DATA, CHECK_KIND = 2, CHECK_DEVICE, CHECK_FLAGS, CHECK_COUNTER };
// Nodes in the order in which they are made. The operands are numbers of arrays, then of constants, then
// of earlier nodes; a leaf has the memory of its operand.
enum { STEP_KIND, STEP_DATA, STEP_OPERANDS, STEP_DTYPE, STEP_SHAPE, STEP_FLAGS, STEP_DEVICE };
enum { MAX_ARRAYS = 16, MAX_NODES = 128, SEQUENCE_DEPTH = 2 };

struct state {
  PyObject *leaf_kind, *ids, *no_args, *float_type, *list_type, *version;
};
static struct state state_;

struct arrays {
  Py_ssize_t count;
  PyObject* nodes[MAX_ARRAYS];
};

static bool is_same_float(PyObject* a, PyObject* b) {
  const double x = PyFloat_AsDouble(a), y = PyFloat_AsDouble(b);
  return !memcmp(&x, &y, sizeof x);  // the signs of zeros count
}

// Strides and offset; those of most expressions do not matter.
static bool has_data(PyObject* node, PyObject* expected) {
  return expected == &_Py_NoneStruct || is_equal(get(node, NODE, NODE_DATA), expected);
}

static bool is_like_array(PyObject* value, PyObject* check, struct arrays* arrays) {
  PyObject* node = type_of(value) == mtl_array_subclass ? get(value, ARRAY, ARRAY_NODE) : 0;
  const bool is_leaf = PyTuple_Size(check) == IS_ARRAY;
  PyObject* kind = is_leaf ? state_.leaf_kind : PyTuple_GetItem(check, CHECK_KIND);
  const long long flags = is_leaf ? 0 : PyLong_AsLongLong(PyTuple_GetItem(check, CHECK_FLAGS));
  if (!node || arrays->count == MAX_ARRAYS || get(node, NODE, NODE_KIND) != kind ||
      get(node, NODE, NODE_DTYPE) != PyTuple_GetItem(check, CHECK_DTYPE) ||
      get(node, NODE, NODE_DEVICE) != PyTuple_GetItem(check, CHECK_DEVICE) ||
      PyLong_AsLongLong(get(node, NODE, NODE_FLAGS)) != flags ||
      !is_equal(get(node, NODE, NODE_SHAPE), PyTuple_GetItem(check, CHECK_SHAPE)) ||
      !has_data(node, PyTuple_GetItem(check, is_leaf ? CHECK_DATA : CHECK_COUNTER)))
    return false;
  arrays->nodes[arrays->count++] = node;
  return true;
}

static bool is_like(PyObject* value, PyObject* check, struct arrays* arrays, int depth) {
  const Py_ssize_t kind = PyTuple_Size(check);
  PyObject* type = PyTuple_GetItem(check, CHECK_TYPE);
  if (kind == IS_OBJECT) return value == type;
  if (kind >= IS_ARRAY) return is_like_array(value, check, arrays);
  if (type_of(value) != type) return false;
  if (kind == IS_EQUAL) {
    PyObject* expected = PyTuple_GetItem(check, CHECK_VALUE);
    return type == state_.float_type ? is_same_float(value, expected) : is_equal(value, expected);
  }
  PyObject* items = PyTuple_GetItem(check, CHECK_ITEMS);
  const bool is_list = type == state_.list_type;
  const Py_ssize_t count = PyTuple_Size(items);
  if (depth == SEQUENCE_DEPTH || (is_list ? PyList_Size(value) : PyTuple_Size(value)) != count) return false;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* item = is_list ? PyList_GetItem(value, i) : PyTuple_GetItem(value, i);
    if (!is_like(item, PyTuple_GetItem(items, i), arrays, depth + 1)) return false;
  }
  return true;
}

// Which arrays are the same, and which have the same memory, are properties of a call as well: by array,
// the number of the first node that is the same, and then of the first one with the same memory.
static bool are_the_same(PyObject* call, const struct arrays* arrays) {
  const char* first = PyBytes_AsString(PyTuple_GetItem(call, CALL_FIRST));
  for (Py_ssize_t i = 0; i < arrays->count; i++) {
    PyObject *node = arrays->nodes[i], *memory = get(node, NODE, NODE_MEMORY);
    Py_ssize_t k = 0, owner = 0;
    while (arrays->nodes[k] != node) k++;
    while (get(arrays->nodes[owner], NODE, NODE_MEMORY) != memory) owner++;
    if (k != first[i] || owner != first[arrays->count + i]) return false;
  }
  return true;
}

// Contiguous indices of an array must be below `extent`, and not negative.
struct range {
  int64_t array, extent, count, item_bytes, offset;
};

// Without branches, so that whole registers are compared: a sign is set where a number is out of range.
#define DEFINE_ARE_BELOW(name, type)                                   \
  static bool name(const void* start, int64_t count, int64_t extent) { \
    const type* numbers = start;                                       \
    int64_t out = 0;                                                   \
    for (int64_t i = 0; i < count; i++) {                              \
      const int64_t number = (int64_t)numbers[i];                      \
      out |= number | (extent - 1 - number);                           \
    }                                                                  \
    return out >= 0;                                                   \
  }
DEFINE_ARE_BELOW(are_below_32, int32_t)
DEFINE_ARE_BELOW(are_below_64, int64_t)
#undef DEFINE_ARE_BELOW

static bool is_in_range(const struct range* range, const struct arrays* arrays) {
  PyObject* memory = get(arrays->nodes[range->array], NODE, NODE_MEMORY);
  uint64_t address;
  if (!is_instance(memory, MEMORY) || !mtl_is_on_host(get(memory, MEMORY, MEMORY_LEASE)) ||
      !mtl_is_complete(get(memory, MEMORY, MEMORY_BOUND)) || !mtl_address_of(memory, &address))
    return false;
  const void* start = (const void*)(uintptr_t)(address + (uint64_t)range->offset);
  if (range->item_bytes == 4) return are_below_32(start, range->count, range->extent);
  return range->item_bytes == 8 && are_below_64(start, range->count, range->extent);
}

static bool are_in_range(PyObject* call, const struct arrays* arrays) {
  PyObject* bytes = PyTuple_GetItem(call, CALL_RANGES);
  const struct range* ranges = (const void*)PyBytes_AsString(bytes);
  const Py_ssize_t count = PyBytes_Size(bytes) / (Py_ssize_t)sizeof *ranges;
  for (Py_ssize_t i = 0; i < count; i++)
    if (!is_in_range(&ranges[i], arrays)) return false;
  return true;
}

static bool match(PyObject* call, PyObject* args, PyObject* options, struct arrays* arrays) {
  PyObject *checks = PyTuple_GetItem(call, CALL_CHECKS), *names = PyTuple_GetItem(call, CALL_NAMES);
  PyObject* settings = PyTuple_GetItem(call, CALL_SETTINGS);
  const Py_ssize_t count = PyTuple_Size(checks), option_count = PyTuple_Size(names);
  arrays->count = 0;
  if (PyTuple_Size(args) != count || PyDict_Size(options) != option_count ||
      PyDict_GetItemWithError(settings, state_.version) != PyTuple_GetItem(call, CALL_VERSION))
    return false;
  for (Py_ssize_t i = 0; i < count; i++)
    if (!is_like(PyTuple_GetItem(args, i), PyTuple_GetItem(checks, i), arrays, 0)) return false;
  for (Py_ssize_t i = 0; i < option_count; i++) {
    PyObject* value = PyDict_GetItemWithError(options, PyTuple_GetItem(names, i));
    PyObject* check = PyTuple_GetItem(PyTuple_GetItem(call, CALL_OPTION_CHECKS), i);
    if (!value || !is_like(value, check, arrays, 0)) return false;
  }
  return are_the_same(call, arrays) && are_in_range(call, arrays);
}

static PyObject* new_leaf(PyObject* step, PyObject* owner) {
  const struct leaf leaf = {state_.leaf_kind, state_.no_args, state_.ids,
                            PyTuple_GetItem(step, STEP_DTYPE), PyTuple_GetItem(step, STEP_SHAPE),
                            PyTuple_GetItem(step, STEP_DATA)};
  return mtl_new_leaf(&leaf, get(owner, NODE, NODE_MEMORY));
}

static PyObject* new_node(PyObject* step, PyObject* const* nodes) {
  PyObject *kind = PyTuple_GetItem(step, STEP_KIND), *operands = PyTuple_GetItem(step, STEP_OPERANDS);
  const Py_ssize_t count = PyTuple_Size(operands);
  if (kind == state_.leaf_kind)
    return new_leaf(step, nodes[PyLong_AsLongLong(PyTuple_GetItem(operands, 0))]);
  PyObject* args = PyTuple_New(count);
  for (Py_ssize_t i = 0; args && i < count; i++)
    PyTuple_SetItem(args, i, new_reference(nodes[PyLong_AsLongLong(PyTuple_GetItem(operands, i))]));
  PyObject* values[NODE_SLOTS] = {
      [NODE_ARGS] = args,
      [NODE_DATA] = new_reference(PyTuple_GetItem(step, STEP_DATA)),
      [NODE_DEVICE] = new_reference(PyTuple_GetItem(step, STEP_DEVICE)),
      [NODE_DTYPE] = new_reference(PyTuple_GetItem(step, STEP_DTYPE)),
      [NODE_FLAGS] = new_reference(PyTuple_GetItem(step, STEP_FLAGS)),
      [NODE_INLINED] = new_reference(&_Py_FalseStruct),
      [NODE_KIND] = new_reference(kind),
      [NODE_MEMORY] = new_reference(&_Py_NoneStruct),
      [NODE_SHAPE] = new_reference(PyTuple_GetItem(step, STEP_SHAPE)),
      [NODE_ID] = PyIter_Next(state_.ids),
  };
  return mtl_new_node(values);
}

static PyObject* new_array(PyObject* number, PyObject* const* nodes) {
  return mtl_new_array_of(mtl_array_subclass, new_reference(nodes[PyLong_AsLongLong(number)]));
}

// An array, or a tuple of arrays.
static PyObject* results_of(PyObject* results, PyObject* const* nodes) {
  const Py_ssize_t count = PyTuple_Size(results);
  if (PyTuple_GetItem(results, 0) != &_Py_NoneStruct) return new_array(PyTuple_GetItem(results, 0), nodes);
  PyObject* arrays = PyTuple_New(count - 1);
  for (Py_ssize_t i = 1; arrays && i < count; i++) {
    PyObject* array = new_array(PyTuple_GetItem(results, i), nodes);
    if (array) {
      PyTuple_SetItem(arrays, i - 1, array);
    } else {
      Py_DecRef(arrays);
      arrays = 0;
    }
  }
  return arrays;
}

static PyObject* results_like(PyObject* call, const struct arrays* arrays) {
  PyObject *constants = PyTuple_GetItem(call, CALL_CONSTANTS), *steps = PyTuple_GetItem(call, CALL_STEPS);
  PyObject *nodes[MAX_ARRAYS + MAX_NODES], *results = 0;
  Py_ssize_t given = arrays->count, created = 0;
  memcpy(nodes, arrays->nodes, (size_t)given * sizeof *nodes);
  for (Py_ssize_t i = 0; i < PyTuple_Size(constants); i++) nodes[given++] = PyTuple_GetItem(constants, i);
  for (; created < PyTuple_Size(steps); created++) {
    nodes[given + created] = new_node(PyTuple_GetItem(steps, created), nodes);
    if (!nodes[given + created]) break;
  }
  if (created == PyTuple_Size(steps)) results = results_of(PyTuple_GetItem(call, CALL_RESULTS), nodes);
  for (Py_ssize_t i = 0; i < created; i++) Py_DecRef(nodes[given + i]);
  return results;
}

// known(calls, args, options): the results of the call that is like one of them; None if none is.
static PyObject* known(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)self, (void)count;
  struct arrays arrays;
  PyObject *calls = args[0], *results = 0;
  for (Py_ssize_t i = 0; i < PyTuple_Size(calls) && !results; i++) {
    PyObject* call = PyTuple_GetItem(calls, i);
    if (match(call, args[1], args[2], &arrays)) results = results_like(call, &arrays);
    if (PyErr_Occurred()) break;
  }
  return results ? results : none_unless_raised();
}

static PyMethodDef definition = {"known", known, METH_FASTCALL, 0};

// From the kind of leaves, `topological_ids`, an empty tuple, and the types of floats and lists.
MTL_EXPORT PyObject* mtl_known_call(PyObject* state) {
  PyObject** items = (PyObject**)&state_;
  for (int i = 0; i < 5; i++) items[i] = new_reference(PyTuple_GetItem(state, i));
  state_.version = PyUnicode_InternFromString("_version");
  return PyCFunction_NewEx(&definition, 0, 0);
}
