// Elementwise operations on arrays of one type, and on numbers: `operands.binary` and `unary`.
// Other operands, and errors, are left to Python.
#include "views.h"

// The items of an operation (operands.py), and of all of them share.
enum { OPERATION_ROW, OPERATION_RESULTS };
enum {
  STATE_KIND, STATE_CONSTANT, STATE_IDS, STATE_SHARED_NUMBER, STATE_NEW_NUMBER, STATE_FLOAT, STATE_INT
};
enum { SHARED_MEMORY = 3, MAX_OPERANDS = 2 };  // the bits of `Memory.sharing`

// Constants for numbers that a program has used lately: most are literals, the same object each time.
enum { KNOWN_NUMBERS = 64 };
static struct {
  PyObject *value, *dtype, *device, *node;
} known_numbers[KNOWN_NUMBERS];

// A number in the type that it adopts next to `partner`: `operands._weak_scalar`.
static PyObject* number_node(PyObject* state, PyObject* value, PyObject* partner) {
  PyObject *dtype = get(partner, NODE, NODE_DTYPE), *device = get(partner, NODE, NODE_DEVICE);
  const uintptr_t hash = ((uintptr_t)value >> 4) ^ ((uintptr_t)dtype >> 5);
  PyObject** known = (PyObject**)&known_numbers[hash % KNOWN_NUMBERS];
  if (known[0] == value && known[1] == dtype && known[2] == device) return new_reference(known[3]);
  const bool is_float = type_of(value) == PyTuple_GetItem(state, STATE_FLOAT);
  const double number = is_float ? PyFloat_AsDouble(value) : PyObject_IsTrue(value);
  const bool is_shared = number != 0 && number == number;  // -0 == 0, and NaN != NaN
  PyObject* make = PyTuple_GetItem(state, is_shared ? STATE_SHARED_NUMBER : STATE_NEW_NUMBER);
  PyObject* node = PyObject_CallFunctionObjArgs(make, value, dtype, device, (void*)0);
  if (!node || !is_shared) return node;
  PyObject *entry[] = {value, dtype, device, node}, *old;
  for (int i = 0; i < 4; i++) {
    old = known[i];
    known[i] = new_reference(entry[i]);
    entry[i] = old;
  }
  for (int i = 0; i < 4; i++) drop(entry[i]);
  return node;
}

// New references to the nodes of the operands. False, perhaps with an error, for other ones.
static bool nodes_of(PyObject* state, PyObject* const* values, Py_ssize_t count, PyObject** nodes) {
  for (Py_ssize_t i = 0; i < count; i++)
    if (is_array_type(type_of(values[i])) && get(values[i], ARRAY, ARRAY_NODE))
      nodes[i] = new_reference(get(values[i], ARRAY, ARRAY_NODE));
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *type = type_of(values[i]), *partner = nodes[count - 1 - i];
    if (nodes[i]) continue;
    const bool is_number =
        type == PyTuple_GetItem(state, STATE_FLOAT) || type == PyTuple_GetItem(state, STATE_INT);
    if (partner && is_number) nodes[i] = number_node(state, values[i], partner);
    if (!nodes[i]) return false;
  }
  return true;
}

static bool extent_of(PyObject* state, PyObject* shape, Py_ssize_t axis, long long* extent) {
  *extent = 1;
  if (axis < 0) return true;
  PyObject* value = PyTuple_GetItem(shape, axis);
  if (type_of(value) != PyTuple_GetItem(state, STATE_INT)) return false;
  *extent = PyLong_AsLongLong(value);
  return true;
}

// The common shape; null, perhaps with an error, if there is none.
static PyObject* broadcast_shape(PyObject* state, PyObject* a, PyObject* b) {
  const Py_ssize_t a_rank = PyTuple_Size(a), b_rank = PyTuple_Size(b);
  const Py_ssize_t rank = a_rank > b_rank ? a_rank : b_rank;
  PyObject* shape = PyTuple_New(rank);
  for (Py_ssize_t i = 0; shape && i < rank; i++) {
    const Py_ssize_t a_axis = i - (rank - a_rank), b_axis = i - (rank - b_rank);
    long long m, n;
    if (!extent_of(state, a, a_axis, &m) || !extent_of(state, b, b_axis, &n) ||
        (m != n && m != 1 && n != 1)) {
      Py_DecRef(shape);
      return 0;
    }
    const bool is_first = m != 1 || b_axis < 0;
    PyTuple_SetItem(shape, i, new_reference(is_first ? PyTuple_GetItem(a, a_axis)
                                                     : PyTuple_GetItem(b, b_axis)));
  }
  return shape;
}

// The shape of the result, to which nodes are broadcast; null, perhaps with an error, if Python has to do it.
static PyObject* shape_of(PyObject* state, PyObject** nodes, Py_ssize_t count) {
  PyObject *first = get(nodes[0], NODE, NODE_SHAPE), *constant = PyTuple_GetItem(state, STATE_CONSTANT);
  if (count == 1) return new_reference(first);
  PyObject* second = get(nodes[1], NODE, NODE_SHAPE);
  if (get(nodes[0], NODE, NODE_KIND) == constant || get(nodes[1], NODE, NODE_KIND) == constant ||
      (PyTuple_Size(first) == PyTuple_Size(second) && is_equal(first, second)))
    return new_reference(PyTuple_Size(first) ? first : second);
  PyObject* shape = broadcast_shape(state, first, second);
  for (Py_ssize_t i = 0; shape && i < count; i++) {
    if (is_equal(get(nodes[i], NODE, NODE_SHAPE), shape)) continue;
    PyObject *node = mtl_broadcast(nodes[i], shape), *old = node ? nodes[i] : shape;
    if (node) nodes[i] = node;
    else shape = 0;
    Py_DecRef(old);
  }
  return shape;
}

static PyObject* result_of(
    PyObject* state, PyObject* operation, PyObject* type, PyObject** nodes, Py_ssize_t count
) {
  PyObject *dtype = get(nodes[0], NODE, NODE_DTYPE), *device = get(nodes[0], NODE, NODE_DEVICE);
  long long flags = 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (get(nodes[i], NODE, NODE_DTYPE) != dtype || get(nodes[i], NODE, NODE_DEVICE) != device) return 0;
    flags |= PyLong_AsLongLong(get(nodes[i], NODE, NODE_FLAGS));
  }
  PyObject* result = PyDict_GetItemWithError(PyTuple_GetItem(operation, OPERATION_RESULTS), dtype);
  PyObject* shape = result && !(flags & SHARED_MEMORY) ? shape_of(state, nodes, count) : 0;
  if (!shape) return 0;
  PyObject* values[NODE_SLOTS] = {
      [NODE_ARGS] = count == 1 ? PyTuple_Pack(1, nodes[0]) : PyTuple_Pack(2, nodes[0], nodes[1]),
      [NODE_DATA] = new_reference(PyTuple_GetItem(operation, OPERATION_ROW)),
      [NODE_DEVICE] = new_reference(device),
      [NODE_DTYPE] = new_reference(result),
      [NODE_FLAGS] = PyLong_FromLongLong(flags),
      [NODE_INLINED] = new_reference(&_Py_FalseStruct),
      [NODE_KIND] = new_reference(PyTuple_GetItem(state, STATE_KIND)),
      [NODE_MEMORY] = new_reference(&_Py_NoneStruct),
      [NODE_SHAPE] = shape,
      [NODE_ID] = PyIter_Next(PyTuple_GetItem(state, STATE_IDS)),
  };
  PyObject* node = mtl_new_node(values);
  return node ? mtl_new_array_of(type, node) : 0;
}

// elementwise(operation, array or number, ...): an array; None for operands that Python has to prepare.
static PyObject* elementwise(PyObject* state, PyObject* const* args, Py_ssize_t count) {
  PyObject *nodes[MAX_OPERANDS] = {0}, *result = 0;
  const Py_ssize_t operands = count - 1;
  if (operands < 1 || operands > MAX_OPERANDS) return new_reference(&_Py_NoneStruct);
  PyObject* type = mtl_layouts[ARRAY].type;
  for (Py_ssize_t i = 1; i < count; i++)
    if (type_of(args[i]) == mtl_array_subclass) type = mtl_array_subclass;
  if (nodes_of(state, &args[1], operands, nodes))
    result = result_of(state, args[0], type, nodes, operands);
  for (Py_ssize_t i = 0; i < operands; i++) drop(nodes[i]);
  return result ? result : none_unless_raised();
}

static PyMethodDef definition = {"elementwise", elementwise, METH_FASTCALL, 0};

MTL_EXPORT PyObject* mtl_elementwise(PyObject* state) {
  return PyCFunction_NewEx(&definition, state, 0);
}
