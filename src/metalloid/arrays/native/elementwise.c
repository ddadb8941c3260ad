// Elementwise operations on arrays of one type and shape, and on numbers: `operands.binary` and `unary`.
// Other operands, and errors, are left to Python.
#include "layouts.h"

// The items of an operation (operands.py), and of what all of them use.
enum { OPERATION_ROW, OPERATION_RESULTS };
enum {
  USED_KIND, USED_CONSTANT, USED_IDS, USED_SHARED_NUMBER, USED_NEW_NUMBER, USED_FLOAT, USED_INT
};
enum { SHARED_MEMORY = 3, MAX_OPERANDS = 2, PY_EQ = 2 };  // the bits of `Memory.sharing`

// Constants for numbers that a program has used lately: most are literals, the same object each time.
enum { KNOWN_NUMBERS = 64 };
static struct {
  PyObject *value, *dtype, *device, *node;
} known_numbers[KNOWN_NUMBERS];

static PyObject* type_of(PyObject* object) {
  PyObject* type = PyObject_Type(object);
  Py_DecRef(type);  // which the object holds
  return type;
}

// A number in the type that it adopts next to `partner`: `operands._weak_scalar`.
static PyObject* number_node(PyObject* used, PyObject* value, PyObject* partner) {
  PyObject *dtype = get(partner, NODE, NODE_DTYPE), *device = get(partner, NODE, NODE_DEVICE);
  const uintptr_t hash = ((uintptr_t)value >> 4) ^ ((uintptr_t)dtype >> 5);
  PyObject** known = (PyObject**)&known_numbers[hash % KNOWN_NUMBERS];
  if (known[0] == value && known[1] == dtype && known[2] == device) return held(known[3]);
  const bool is_float = type_of(value) == PyTuple_GetItem(used, USED_FLOAT);
  const double number = is_float ? PyFloat_AsDouble(value) : PyObject_IsTrue(value);
  const bool is_shared = number != 0 && number == number;  // -0 == 0, and NaN != NaN
  PyObject* make = PyTuple_GetItem(used, is_shared ? USED_SHARED_NUMBER : USED_NEW_NUMBER);
  PyObject* node = PyObject_CallFunctionObjArgs(make, value, dtype, device, (void*)0);
  if (!node || !is_shared) return node;
  PyObject *entry[] = {value, dtype, device, node}, *old;
  for (int i = 0; i < 4; i++) {
    old = known[i];
    known[i] = held(entry[i]);
    entry[i] = old;
  }
  for (int i = 0; i < 4; i++) drop(entry[i]);
  return node;
}

static bool is_equal(PyObject* a, PyObject* b) {
  return a == b || PyObject_RichCompareBool(a, b, PY_EQ) == 1;
}

// New references to the nodes of the operands. False, perhaps with an error, for other ones.
static bool nodes_of(PyObject* used, PyObject* const* values, Py_ssize_t count, PyObject** nodes) {
  for (Py_ssize_t i = 0; i < count; i++)
    if (type_of(values[i]) == mtl_layouts[ARRAY].type && get(values[i], ARRAY, ARRAY_NODE))
      nodes[i] = held(get(values[i], ARRAY, ARRAY_NODE));
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *type = type_of(values[i]), *partner = nodes[count - 1 - i];
    if (nodes[i]) continue;
    const bool is_number =
        type == PyTuple_GetItem(used, USED_FLOAT) || type == PyTuple_GetItem(used, USED_INT);
    if (partner && is_number) nodes[i] = number_node(used, values[i], partner);
    if (!nodes[i]) return false;
  }
  return true;
}

// The shape of the result; null if the operands have to be broadcast. Borrowed.
static PyObject* shape_of(PyObject* used, PyObject* const* nodes, Py_ssize_t count) {
  PyObject *first = get(nodes[0], NODE, NODE_SHAPE), *constant = PyTuple_GetItem(used, USED_CONSTANT);
  if (count == 1) return first;
  PyObject* second = get(nodes[1], NODE, NODE_SHAPE);
  if (get(nodes[0], NODE, NODE_KIND) != constant && get(nodes[1], NODE, NODE_KIND) != constant &&
      !is_equal(first, second))
    return 0;
  return PyTuple_Size(first) ? first : second;
}

static PyObject* result_of(PyObject* used, PyObject* operation, PyObject* const* nodes,
                           Py_ssize_t count) {
  PyObject *dtype = get(nodes[0], NODE, NODE_DTYPE), *device = get(nodes[0], NODE, NODE_DEVICE);
  long long flags = 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (get(nodes[i], NODE, NODE_DTYPE) != dtype || get(nodes[i], NODE, NODE_DEVICE) != device) return 0;
    flags |= PyLong_AsLongLong(get(nodes[i], NODE, NODE_FLAGS));
  }
  PyObject* result = PyDict_GetItemWithError(PyTuple_GetItem(operation, OPERATION_RESULTS), dtype);
  PyObject* shape = shape_of(used, nodes, count);
  if (!result || !shape || flags & SHARED_MEMORY) return 0;
  PyObject* values[NODE_SLOTS] = {
      [NODE_ARGS] = count == 1 ? PyTuple_Pack(1, nodes[0]) : PyTuple_Pack(2, nodes[0], nodes[1]),
      [NODE_DATA] = held(PyTuple_GetItem(operation, OPERATION_ROW)),
      [NODE_DEVICE] = held(device),
      [NODE_DTYPE] = held(result),
      [NODE_FLAGS] = PyLong_FromLongLong(flags),
      [NODE_INLINED] = held(&_Py_FalseStruct),
      [NODE_KIND] = held(PyTuple_GetItem(used, USED_KIND)),
      [NODE_MEMORY] = held(&_Py_NoneStruct),
      [NODE_SHAPE] = held(shape),
      [NODE_ID] = PyIter_Next(PyTuple_GetItem(used, USED_IDS)),
  };
  PyObject* node = mtl_new_node(values);
  return node ? mtl_new_array(node) : 0;
}

// elementwise(operation, array or number, ...): an array; None for operands that Python has to prepare.
static PyObject* elementwise(PyObject* used, PyObject* const* given, Py_ssize_t count) {
  PyObject *nodes[MAX_OPERANDS] = {0}, *result = 0;
  const Py_ssize_t operands = count - 1;
  if (operands < 1 || operands > MAX_OPERANDS) return held(&_Py_NoneStruct);
  if (nodes_of(used, &given[1], operands, nodes)) result = result_of(used, given[0], nodes, operands);
  for (Py_ssize_t i = 0; i < operands; i++) drop(nodes[i]);
  return result || PyErr_Occurred() ? result : held(&_Py_NoneStruct);
}

static PyMethodDef definition = {"elementwise", elementwise, METH_FASTCALL, 0};

MTL_EXPORT PyObject* mtl_elementwise(PyObject* used) {
  return PyCFunction_NewEx(&definition, used, 0);
}
