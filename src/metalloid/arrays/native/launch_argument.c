// Arrays as arguments of launches: `Interop.__metalloid_memory__` for memory of the pool, in C.
#include "pool.h"

static PyObject *itemsize_, *kind_of_leaves;

// Whether one attribute is all that refers to an object. The count is in the lowest 32 bits.
static bool has_one_reference(PyObject* object) { return *(const uint32_t*)object == 1; }

// The number of elements; -1 if they are not contiguous.
static int64_t elements_of(PyObject* shape, PyObject* strides) {
  int64_t count = 1;
  for (Py_ssize_t axis = PyTuple_Size(shape) - 1; axis >= 0; axis--) {
    const long long extent = PyLong_AsLongLong(PyTuple_GetItem(shape, axis));
    if (extent != 1 && PyLong_AsLongLong(PyTuple_GetItem(strides, axis)) != count) return -1;
    count *= extent;
  }
  return count;
}

// The address and size of an array of this type on this device, with a reference to its memory; null,
// perhaps with an error, if Python has to bind it.
MTL_EXPORT PyObject* mtl_bind_array(PyObject* array, PyObject* device, PyObject* dtype, bool writes,
                                    uint64_t* address, uint64_t* bytes) {
  PyObject* node = get(array, ARRAY, ARRAY_NODE);
  if (!node || get(node, NODE, NODE_KIND) != kind_of_leaves) return 0;
  if (get(node, NODE, NODE_DTYPE) != dtype || get(node, NODE, NODE_DEVICE) != device) return 0;
  PyObject *memory = get(node, NODE, NODE_MEMORY), *data = get(node, NODE, NODE_DATA);
  if (!is_instance(memory, MEMORY) || !mtl_is_on_host(get(memory, MEMORY, MEMORY_LEASE))) return 0;
  if (!mtl_wait_for(get(memory, MEMORY, MEMORY_BOUND))) return 0;
  if (get(array, ARRAY, ARRAY_NODE) != node) return 0;  // replaced meanwhile
  if (writes && !(has_one_reference(node) && has_one_reference(memory))) return 0;
  const int64_t count = elements_of(get(node, NODE, NODE_SHAPE), PyTuple_GetItem(data, 0));
  PyObject* size = PyObject_GetAttr(dtype, itemsize_);
  const int64_t item_bytes = size ? PyLong_AsLongLong(size) : 0;
  drop(size);
  if (count < 1 || !mtl_address_of(memory, address)) return 0;
  *bytes = (uint64_t)(count * item_bytes);
  *address += (uint64_t)(PyLong_AsLongLong(PyTuple_GetItem(data, 1)) * item_bytes);
  return new_reference(memory);
}

// From node.BUFFER.
MTL_EXPORT void mtl_prepare_bind_array(PyObject* kind) {
  itemsize_ = PyUnicode_InternFromString("itemsize");
  kind_of_leaves = new_reference(kind);
}
