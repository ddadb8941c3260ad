// Read-only NumPy arrays on the memory of evaluated nodes.
#include "pool.h"

struct exporter {
  Py_ssize_t references;
  PyObject* type;
  void* address;
  Py_ssize_t bytes;
  PyObject* memory;
};

static PyObject *exporter_type, *itemsize_, *nbytes_;

static int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  struct exporter* exporter = (struct exporter*)self;
  return PyBuffer_FillInfo(view, self, exporter->address, exporter->bytes, 1, flags);
}

static void deallocate(PyObject* self) {
  PyObject* type = ((struct exporter*)self)->type;
  Py_DecRef(((struct exporter*)self)->memory);
  PyObject_Free(self);
  Py_DecRef(type);
}

static PyType_Slot slots[] = {
    {Py_bf_getbuffer, (void*)get_buffer}, {Py_tp_dealloc, (void*)deallocate}, {0, 0}};
static PyType_Spec spec = {"metalloid.arrays.native.HostMemory", sizeof(struct exporter), 0,
                           Py_TPFLAGS_DEFAULT, slots};

static bool number_of(PyObject* object, PyObject* name, int64_t* number) {
  PyObject* attribute = PyObject_GetAttr(object, name);
  *number = attribute ? PyLong_AsLongLong(attribute) : -1;
  drop(attribute);
  return *number >= 0;
}

static PyObject* new_exporter(PyObject* memory, int64_t bytes) {
  uint64_t address;
  if (!as_word(get(memory, MEMORY, MEMORY_ADDRESS), &address)) return 0;
  struct exporter* exporter = (void*)PyType_GenericAlloc(exporter_type, 0);
  if (!exporter) return 0;
  exporter->address = (void*)(uintptr_t)address;
  exporter->bytes = bytes;
  exporter->memory = new_reference(memory);
  return (PyObject*)exporter;
}

// Strides in bytes.
static PyObject* byte_strides(PyObject* strides, int64_t item_bytes) {
  const Py_ssize_t count = PyTuple_Size(strides);
  PyObject* tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple && i < count; i++) {
    const long long stride = PyLong_AsLongLong(PyTuple_GetItem(strides, i));
    PyTuple_SetItem(tuple, i, PyLong_FromLongLong(stride * item_bytes));
  }
  return tuple;
}

static PyObject* array_of(PyObject* ndarray, PyObject* node) {
  PyObject *memory = get(node, NODE, NODE_MEMORY), *data = get(node, NODE, NODE_DATA);
  PyObject *dtype = get(node, NODE, NODE_DTYPE), *buffer = get(memory, MEMORY, MEMORY_BOUND);
  int64_t item_bytes, bytes;
  if (!mtl_wait_for(buffer) || !number_of(dtype, itemsize_, &item_bytes) ||
      !number_of(buffer, nbytes_, &bytes))
    return 0;
  PyObject *exporter = new_exporter(memory, bytes), *array = 0;
  PyObject* strides = byte_strides(PyTuple_GetItem(data, 0), item_bytes);
  PyObject* offset = PyLong_FromLongLong(item_bytes * PyLong_AsLongLong(PyTuple_GetItem(data, 1)));
  if (exporter && strides && offset)
    array = PyObject_CallFunctionObjArgs(ndarray, get(node, NODE, NODE_SHAPE), dtype, exporter, offset,
                                         strides, (void*)0);
  drop(exporter), drop(strides), drop(offset);
  return array;
}

static bool has_elements(PyObject* shape) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(shape); i++)
    if (!PyLong_AsLongLong(PyTuple_GetItem(shape, i))) return false;
  return true;
}

// host_array(node): an array on the memory of a leaf of the pool; None for other nodes, and without
// elements, where NumPy refuses strides beyond the memory.
static PyObject* host_array(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  PyObject *node = args[0], *memory = get(node, NODE, NODE_MEMORY), *array = 0;
  const bool is_leaf = get(node, NODE, NODE_KIND) == PyTuple_GetItem(self, 1);
  if (is_leaf && is_instance(memory, MEMORY) && mtl_is_on_host(get(memory, MEMORY, MEMORY_LEASE)) &&
      has_elements(get(node, NODE, NODE_SHAPE)))
    array = array_of(PyTuple_GetItem(self, 0), node);
  return array ? array : none_unless_raised();
}

static PyMethodDef definition = {"host_array", host_array, METH_FASTCALL, 0};

// From numpy.ndarray and node.BUFFER.
MTL_EXPORT PyObject* mtl_host_array(PyObject* self) {
  itemsize_ = PyUnicode_InternFromString("itemsize");
  nbytes_ = PyUnicode_InternFromString("nbytes");
  exporter_type = PyType_FromSpec(&spec);
  return exporter_type ? PyCFunction_NewEx(&definition, self, 0) : 0;
}
