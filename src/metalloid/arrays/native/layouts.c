#include "layouts.h"

struct layout mtl_layouts[CLASSES];
PyObject* mtl_array_subclass;

MTL_EXPORT void mtl_define_class(int class, PyObject* type, const uint64_t* offsets, int count) {
  mtl_layouts[class].type = new_reference(type);
  memcpy(mtl_layouts[class].offsets, offsets, 8 * (size_t)count);
}

static PyObject* new_object(PyObject* type, int class, PyObject* const* values, int count) {
  bool is_complete = true;
  for (int i = 0; i < count; i++) is_complete &= values[i] != 0;
  PyObject* object = is_complete ? PyType_GenericAlloc(type, 0) : 0;
  for (int i = 0; i < count; i++)
    if (object) put(object, class, i, values[i]);
    else drop(values[i]);
  return object;
}

PyObject* mtl_new_node(PyObject* const* values) {
  return new_object(mtl_layouts[NODE].type, NODE, values, NODE_SLOTS);
}

PyObject* mtl_new_array(PyObject* node) { return mtl_new_array_of(mtl_layouts[ARRAY].type, node); }

PyObject* mtl_new_array_of(PyObject* type, PyObject* node) {
  return new_object(type, ARRAY, &node, ARRAY_SLOTS);
}

PyObject* mtl_new_leaf(const struct leaf* leaf, PyObject* memory) {
  PyObject* values[NODE_SLOTS] = {
      [NODE_ARGS] = new_reference(leaf->no_args),
      [NODE_DATA] = new_reference(leaf->data),
      [NODE_DEVICE] = new_reference(get(memory, MEMORY, MEMORY_DEVICE)),
      [NODE_DTYPE] = new_reference(leaf->dtype),
      [NODE_FLAGS] = new_reference(get(memory, MEMORY, MEMORY_SHARING)),
      [NODE_INLINED] = new_reference(&_Py_FalseStruct),
      [NODE_KIND] = new_reference(leaf->kind),
      [NODE_MEMORY] = new_reference(memory),
      [NODE_SHAPE] = new_reference(leaf->shape),
      [NODE_ID] = PyIter_Next(leaf->ids),
  };
  return mtl_new_node(values);
}
