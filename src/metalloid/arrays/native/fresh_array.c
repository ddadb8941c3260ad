// New leaves with memory of a pool: uninitialised for results of kernels, `node.fresh`, and copies of NumPy
// arrays, `host_arrays.from_numpy`.
#include "pool.h"

// The items of all leaves share, and of those of one kind (`host_arrays.recipe`).
enum { STATE_KIND, STATE_NO_ARGS, STATE_IDS };
enum { RECIPE_POOL, RECIPE_SIZE, RECIPE_DTYPE, RECIPE_SHAPE, RECIPE_DATA };

static PyObject* new_memory(PyObject* recipe) {
  uint64_t pool;
  if (!as_word(PyTuple_GetItem(recipe, RECIPE_POOL), &pool)) return 0;
  struct bucket* bucket =
      mtl_bucket_of((struct pool*)(uintptr_t)pool, PyTuple_GetItem(recipe, RECIPE_SIZE));
  return bucket ? mtl_new_memory(bucket) : 0;
}

static PyObject* new_leaf(PyObject* state, PyObject* recipe, PyObject* memory) {
  const struct leaf leaf = {
      .kind = PyTuple_GetItem(state, STATE_KIND),
      .no_args = PyTuple_GetItem(state, STATE_NO_ARGS),
      .ids = PyTuple_GetItem(state, STATE_IDS),
      .dtype = PyTuple_GetItem(recipe, RECIPE_DTYPE),
      .shape = PyTuple_GetItem(recipe, RECIPE_SHAPE),
      .data = PyTuple_GetItem(recipe, RECIPE_DATA),
  };
  return mtl_new_leaf(&leaf, memory);
}

// fresh_array(recipe)
static PyObject* fresh_array(PyObject* state, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  PyObject* memory = new_memory(args[0]);
  if (!memory) return 0;
  PyObject* array = mtl_new_array(new_leaf(state, args[0], memory));
  Py_DecRef(memory);
  return array;
}

static bool copy_to(PyObject* memory, const Py_buffer* view) {
  uint64_t address;
  if (!mtl_is_complete(get(memory, MEMORY, MEMORY_BOUND)) || !mtl_address_of(memory, &address)) return false;
  memcpy((void*)(uintptr_t)address, view->memory, (size_t)view->bytes);
  return true;
}

// copied_leaf(recipe, array): a leaf with the elements of a contiguous NumPy array of the same type and shape;
// None if Python has to copy them.
static PyObject* copied_leaf(PyObject* state, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  Py_buffer view;
  if (PyObject_GetBuffer(args[1], &view, PyBUF_SIMPLE)) {
    PyErr_Clear();
    return new_reference(&_Py_NoneStruct);
  }
  PyObject *memory = new_memory(args[0]), *leaf = 0;
  if (memory && copy_to(memory, &view)) leaf = new_leaf(state, args[0], memory);
  drop(memory);
  PyBuffer_Release(&view);
  return leaf ? leaf : none_unless_raised();
}

static PyMethodDef definition = {"fresh_array", fresh_array, METH_FASTCALL, 0};

static PyMethodDef copy_definition = {"copied_leaf", copied_leaf, METH_FASTCALL, 0};

MTL_EXPORT PyObject* mtl_fresh_array(PyObject* state) { return PyCFunction_NewEx(&definition, state, 0); }
MTL_EXPORT PyObject* mtl_copied_leaf(PyObject* state) { return PyCFunction_NewEx(&copy_definition, state, 0); }
