// NumPy arrays and read-only memoryviews on the memory of evaluated nodes.
#include "graph_key.h"
#include "pool.h"

enum { MAX_DIMENSIONS = 8, AS_BUFFER_OFFSET = 160 };

struct exporter {
  Py_ssize_t references;
  PyObject* type;
  void* address;
  Py_ssize_t bytes;
  PyObject* memory;
  bool is_writable;
  Py_ssize_t shape[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];  // of a memoryview of an array
};

typedef int (*buffer_getter)(PyObject* self, Py_buffer* view, int flags);

static PyObject *exporter_type, *itemsize_, *nbytes_, *char_, *buffer_kind, *evaluate, *record_error;
static buffer_getter get_buffer_by_python;
// How often values of arrays were given to the host.
static uint64_t reads;

static int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  struct exporter* exporter = (struct exporter*)self;
  return PyBuffer_FillInfo(view, self, exporter->address, exporter->bytes, !exporter->is_writable,
                           flags);
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

static PyObject* new_exporter(PyObject* memory, int64_t bytes, bool is_writable) {
  uint64_t address;
  if (!mtl_address_of(memory, &address)) return 0;
  struct exporter* exporter = (void*)PyType_GenericAlloc(exporter_type, 0);
  if (!exporter) return 0;
  exporter->address = (void*)(uintptr_t)address;
  exporter->bytes = bytes;
  exporter->memory = new_reference(memory);
  exporter->is_writable = is_writable;
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

static PyObject* array_of(PyObject* ndarray, PyObject* node, bool is_writable) {
  PyObject *memory = get(node, NODE, NODE_MEMORY), *data = get(node, NODE, NODE_DATA);
  PyObject *dtype = get(node, NODE, NODE_DTYPE), *buffer = get(memory, MEMORY, MEMORY_BOUND);
  int64_t item_bytes, bytes;
  if (!mtl_wait_for(buffer) || !number_of(dtype, itemsize_, &item_bytes) ||
      !number_of(buffer, nbytes_, &bytes))
    return 0;
  PyObject *exporter = new_exporter(memory, bytes, is_writable), *array = 0;
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
  reads++;
  const bool is_leaf = get(node, NODE, NODE_KIND) == PyTuple_GetItem(self, 1);
  if (is_leaf && is_instance(memory, MEMORY) && mtl_is_on_host(get(memory, MEMORY, MEMORY_LEASE)) &&
      has_elements(get(node, NODE, NODE_SHAPE)))
    array = array_of(PyTuple_GetItem(self, 0), node, PyTuple_GetItem(self, 2) == &_Py_TrueStruct);
  return array ? array : none_unless_raised();
}

// The format of elements in the buffer protocol, by NumPy's character of a type; null for others.
static char* format_of(PyObject* dtype) {
  static char formats[] = "?\0b\0B\0h\0H\0i\0I\0l\0L\0e\0f\0d";
  PyObject* character = PyObject_GetAttr(dtype, char_);
  const char* text = character ? PyUnicode_AsUTF8AndSize(character, 0) : 0;
  char* format = 0;
  for (size_t i = 0; text && i < sizeof formats; i += 2)
    if (*text == formats[i]) format = &formats[i];
  drop(character);
  return format;
}

// Fills a view of a leaf of the pool. False for other nodes, and types of other formats.
static bool fill_view(PyObject* node, Py_buffer* view) {
  PyObject *memory = get(node, NODE, NODE_MEMORY), *shape = get(node, NODE, NODE_SHAPE);
  if (get(node, NODE, NODE_KIND) != buffer_kind || !is_instance(memory, MEMORY)) return false;
  PyObject *buffer = get(memory, MEMORY, MEMORY_BOUND), *dtype = get(node, NODE, NODE_DTYPE);
  PyObject* data = get(node, NODE, NODE_DATA);
  const Py_ssize_t count = PyTuple_Size(shape);
  char* format = format_of(dtype);
  int64_t item_bytes, bytes;
  if (!mtl_is_on_host(get(memory, MEMORY, MEMORY_LEASE)) || count > MAX_DIMENSIONS || !format ||
      !has_elements(shape) || !mtl_is_complete(buffer) || !number_of(dtype, itemsize_, &item_bytes) ||
      !number_of(buffer, nbytes_, &bytes))
    return false;
  struct exporter* exporter = (struct exporter*)new_exporter(memory, bytes, false);
  if (!exporter) return false;
  const int64_t offset = item_bytes * PyLong_AsLongLong(PyTuple_GetItem(data, 1));
  int64_t size = item_bytes;
  for (Py_ssize_t i = 0; i < count; i++) {
    exporter->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    const int64_t stride = PyLong_AsLongLong(PyTuple_GetItem(PyTuple_GetItem(data, 0), i));
    exporter->strides[i] = item_bytes * stride;
    size *= exporter->shape[i];
  }
  *view = (Py_buffer){(char*)exporter->address + offset, (PyObject*)exporter, size, item_bytes, 1,
                      (int)count, format, exporter->shape, exporter->strides, 0, 0};
  return true;
}

// Evaluates the node of an array. Errors are recorded, as NumPy drops those of buffers.
static bool has_value(PyObject* array, PyObject* node) {
  if (mtl_evaluate_alone(node)) return true;
  PyObject *type, *value, *trace, *done;
  if (!PyErr_Occurred()) {
    done = PyObject_CallFunctionObjArgs(evaluate, array, (void*)0);
    drop(done);
    return done;
  }
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  done = PyObject_CallFunctionObjArgs(record_error, node, value, (void*)0);
  drop(done);
  PyErr_Restore(type, value, trace);
  return false;
}

// Of arrays: as `Array.__buffer__`, which NumPy calls before `__array__`.
static int get_array_buffer(PyObject* self, Py_buffer* view, int flags) {
  PyObject* node = flags == PyBUF_FULL_RO ? get(self, ARRAY, ARRAY_NODE) : 0;
  reads++;
  if (!node) return get_buffer_by_python(self, view, flags);
  new_reference(node);
  const bool is_evaluated = get(node, NODE, NODE_KIND) == buffer_kind || has_value(self, node);
  Py_DecRef(node);
  if (!is_evaluated) return -1;
  node = new_reference(get(self, ARRAY, ARRAY_NODE));
  const bool is_filled = fill_view(node, view);
  Py_DecRef(node);
  if (is_filled) return 0;
  PyErr_Clear();
  return get_buffer_by_python(self, view, flags);
}

MTL_EXPORT uint64_t mtl_host_reads(void) { return reads; }

static PyMethodDef definition = {"host_array", host_array, METH_FASTCALL, 0};

static bool prepare(void) {
  if (exporter_type) return true;
  char_ = PyUnicode_InternFromString("char");
  itemsize_ = PyUnicode_InternFromString("itemsize");
  nbytes_ = PyUnicode_InternFromString("nbytes");
  exporter_type = PyType_FromSpec(&spec);
  return exporter_type;
}

// From numpy.ndarray, node.BUFFER, and whether the arrays are writable.
MTL_EXPORT PyObject* mtl_host_array(PyObject* self) {
  return prepare() ? PyCFunction_NewEx(&definition, self, 0) : 0;
}

static void replace_buffer_getter(PyObject* type) {
  buffer_getter* getters = *(buffer_getter**)((char*)type + AS_BUFFER_OFFSET);
  void* expected = PyType_GetSlot(type, Py_bf_getbuffer);
  if (!expected || !getters || (void*)*getters != expected) return;
  if (!get_buffer_by_python) get_buffer_by_python = *getters;
  if (*getters == get_buffer_by_python) *getters = get_array_buffer;
}

// Arrays export buffers without Python's `__buffer__`. The interpreter has no function to replace a slot:
// it stays as it is where the type is laid out differently. Takes node.BUFFER, and functions that
// evaluate an array, and that record an error of a node.
MTL_EXPORT void mtl_define_buffers(PyObject* kind, PyObject* function, PyObject* on_error) {
  if (!prepare()) return;
  buffer_kind = new_reference(kind), evaluate = new_reference(function);
  record_error = new_reference(on_error);
  replace_buffer_getter(mtl_layouts[ARRAY].type);
}

MTL_EXPORT void mtl_define_array_subclass(PyObject* type) {
  mtl_array_subclass = new_reference(type);
  if (get_buffer_by_python) replace_buffer_getter(type);
}
