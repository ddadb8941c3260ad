// Nodes of expressions: `Node(kind, data, args, dtype, shape, device)`.
#include "layouts.h"

enum { GIVEN_KIND, GIVEN_DATA, GIVEN_ARGS, GIVEN_DTYPE, GIVEN_SHAPE, GIVEN_DEVICE };

static PyObject* has_float64_;

// new_node(kind, data, args, dtype, shape, device): a node; None if Python has to refuse it.
static PyObject* new_node(PyObject* ids, PyObject* const* given, Py_ssize_t count) {
  (void)count;
  PyObject* args = given[GIVEN_ARGS];
  if (!is(given[GIVEN_DEVICE], has_float64_, &_Py_TrueStruct))
    return PyErr_Occurred() ? 0 : held(&_Py_NoneStruct);
  long long flags = 0;
  for (Py_ssize_t i = 0; i < PyTuple_Size(args); i++)
    flags |= PyLong_AsLongLong(get(PyTuple_GetItem(args, i), NODE, NODE_FLAGS));
  PyObject* values[NODE_SLOTS] = {
      [NODE_ARGS] = held(args),
      [NODE_DATA] = held(given[GIVEN_DATA]),
      [NODE_DEVICE] = held(given[GIVEN_DEVICE]),
      [NODE_DTYPE] = held(given[GIVEN_DTYPE]),
      [NODE_FLAGS] = PyLong_FromLongLong(flags),
      [NODE_INLINED] = held(&_Py_FalseStruct),
      [NODE_KIND] = held(given[GIVEN_KIND]),
      [NODE_MEMORY] = held(&_Py_NoneStruct),
      [NODE_SHAPE] = held(given[GIVEN_SHAPE]),
      [NODE_ID] = PyIter_Next(ids),
  };
  return mtl_new_node(values);
}

static PyMethodDef definition = {"new_node", new_node, METH_FASTCALL, 0};

// From `topological_ids`.
MTL_EXPORT PyObject* mtl_new_nodes(PyObject* ids) {
  has_float64_ = PyUnicode_InternFromString("has_float64");
  return PyCFunction_NewEx(&definition, ids, 0);
}
