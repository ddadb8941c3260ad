// Objects of the classes Memory, Node and Array, which are accessed by the offsets of their slots.
#pragma once
#include "values.h"

#define MTL_EXPORT __attribute__((visibility("default")))

enum { MEMORY, NODE, ARRAY, CLASSES };
enum { MEMORY_LEASE, MEMORY_ADDRESS, MEMORY_BOUND, MEMORY_DEVICE, MEMORY_SHARING };
enum {
  NODE_ARGS, NODE_DATA, NODE_DEVICE, NODE_DTYPE, NODE_FLAGS, NODE_INLINED, NODE_KIND, NODE_MEMORY,
  NODE_SHAPE, NODE_ID, NODE_SLOTS
};
enum { ARRAY_NODE, ARRAY_SLOTS };
enum { MAX_SLOTS = NODE_SLOTS };

struct layout {
  PyObject* type;
  uint64_t offsets[MAX_SLOTS];
};
extern struct layout mtl_layouts[CLASSES];
// A subclass of Array with the same slots: metalloid.numpy.ndarray; null before it is defined.
extern PyObject* mtl_array_subclass;

static inline PyObject** slot(PyObject* object, int class, int name) {
  return (PyObject**)((char*)object + mtl_layouts[class].offsets[name]);
}

// Borrowed; null if it is not set.
static inline PyObject* get(PyObject* object, int class, int name) {
  return *slot(object, class, name);
}

// Fills a slot of a new object; takes the reference.
static inline void put(PyObject* object, int class, int name, PyObject* value) {
  *slot(object, class, name) = value;
}

static inline PyObject* new_reference(PyObject* object) {
  Py_IncRef(object);
  return object;
}

// Borrowed from the object, where it follows the number of references.
static inline PyObject* type_of(PyObject* object) { return ((PyObject**)object)[1]; }

static inline bool is_instance(PyObject* object, int class) {
  return type_of(object) == mtl_layouts[class].type;
}

static inline bool is_array_type(PyObject* type) {
  return type == mtl_layouts[ARRAY].type || type == mtl_array_subclass;
}

static inline bool is_equal(PyObject* a, PyObject* b) {
  enum { PY_EQ = 2 };
  return a == b || PyObject_RichCompareBool(a, b, PY_EQ) == 1;
}

// The result of a function that could not do its work: null with the exceptions of Python's code and of
// Ctrl-C, otherwise None, for which the caller asks Python.
static inline PyObject* none_unless_raised(void) {
  return PyErr_Occurred() ? 0 : new_reference(&_Py_NoneStruct);
}

// New objects; null with an error. They take the references, also on failure, where a node may be null.
// The values of a node are in the order of the slots.
PyObject* mtl_new_node(PyObject* const* values);
PyObject* mtl_new_array(PyObject* node);
PyObject* mtl_new_array_of(PyObject* type, PyObject* node);

struct leaf {
  PyObject *kind, *no_args, *ids, *dtype, *shape, *data;  // borrowed
};
PyObject* mtl_new_leaf(const struct leaf* leaf, PyObject* memory);
