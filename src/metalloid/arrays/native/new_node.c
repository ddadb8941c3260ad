// Nodes of expressions: `Node(kind, data, args, dtype, shape, device)`.
#include "layouts.h"

enum { ARGUMENT_KIND, ARGUMENT_DATA, ARGUMENT_ARGS, ARGUMENT_DTYPE, ARGUMENT_SHAPE, ARGUMENT_DEVICE };

static PyObject* has_float64_;

// new_node(kind, data, args, dtype, shape, device): a node; None if Python has to refuse it.
static PyObject* new_node(PyObject* ids, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  PyObject* operands = args[ARGUMENT_ARGS];
  if (!is(args[ARGUMENT_DEVICE], has_float64_, &_Py_TrueStruct))
    return none_unless_raised();
  long long flags = 0;
  for (Py_ssize_t i = 0; i < PyTuple_Size(operands); i++)
    flags |= PyLong_AsLongLong(get(PyTuple_GetItem(operands, i), NODE, NODE_FLAGS));
  PyObject* values[NODE_SLOTS] = {
      [NODE_ARGS] = new_reference(operands),
      [NODE_DATA] = new_reference(args[ARGUMENT_DATA]),
      [NODE_DEVICE] = new_reference(args[ARGUMENT_DEVICE]),
      [NODE_DTYPE] = new_reference(args[ARGUMENT_DTYPE]),
      [NODE_FLAGS] = PyLong_FromLongLong(flags),
      [NODE_INLINED] = new_reference(&_Py_FalseStruct),
      [NODE_KIND] = new_reference(args[ARGUMENT_KIND]),
      [NODE_MEMORY] = new_reference(&_Py_NoneStruct),
      [NODE_SHAPE] = new_reference(args[ARGUMENT_SHAPE]),
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
