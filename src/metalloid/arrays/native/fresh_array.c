// New arrays with uninitialised memory of a pool, for results of kernels: `node.fresh`.
#include "pool.h"

// The items of all arrays share, and of those of one kind (numpy_protocols.py).
enum { STATE_KIND, STATE_NO_ARGS, STATE_IDS };
enum { RECIPE_POOL, RECIPE_SIZE, RECIPE_DTYPE, RECIPE_SHAPE, RECIPE_DATA };

// fresh_array(recipe)
static PyObject* fresh_array(PyObject* state, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  PyObject* recipe = args[0];
  uint64_t pool;
  if (!as_word(PyTuple_GetItem(recipe, RECIPE_POOL), &pool)) return 0;
  struct bucket* bucket =
      mtl_bucket_of((struct pool*)(uintptr_t)pool, PyTuple_GetItem(recipe, RECIPE_SIZE));
  PyObject* memory = bucket ? mtl_new_memory(bucket) : 0;
  if (!memory) return 0;
  const struct leaf leaf = {
      .kind = PyTuple_GetItem(state, STATE_KIND),
      .no_args = PyTuple_GetItem(state, STATE_NO_ARGS),
      .ids = PyTuple_GetItem(state, STATE_IDS),
      .dtype = PyTuple_GetItem(recipe, RECIPE_DTYPE),
      .shape = PyTuple_GetItem(recipe, RECIPE_SHAPE),
      .data = PyTuple_GetItem(recipe, RECIPE_DATA),
  };
  PyObject* array = mtl_new_array(mtl_new_leaf(&leaf, memory));
  Py_DecRef(memory);
  return array;
}

static PyMethodDef definition = {"fresh_array", fresh_array, METH_FASTCALL, 0};

MTL_EXPORT PyObject* mtl_fresh_array(PyObject* state) { return PyCFunction_NewEx(&definition, state, 0); }
