// New arrays with uninitialised memory of a pool, for results of kernels: `node.fresh`.
#include "pool.h"

// The items of what all arrays use, and of those of one kind (numpy_protocols.py).
enum { USED_KIND, USED_NO_ARGS, USED_IDS };
enum { RECIPE_POOL, RECIPE_SIZE, RECIPE_DTYPE, RECIPE_SHAPE, RECIPE_DATA };

// fresh_array(recipe)
static PyObject* fresh_array(PyObject* used, PyObject* const* given, Py_ssize_t count) {
  (void)count;
  PyObject* recipe = given[0];
  uint64_t pool;
  if (!as_word(PyTuple_GetItem(recipe, RECIPE_POOL), &pool)) return 0;
  PyObject* memory =
      mtl_new_memory((struct pool*)(uintptr_t)pool, PyTuple_GetItem(recipe, RECIPE_SIZE));
  if (!memory) return 0;
  const struct leaf leaf = {
      .kind = PyTuple_GetItem(used, USED_KIND),
      .no_args = PyTuple_GetItem(used, USED_NO_ARGS),
      .ids = PyTuple_GetItem(used, USED_IDS),
      .dtype = PyTuple_GetItem(recipe, RECIPE_DTYPE),
      .shape = PyTuple_GetItem(recipe, RECIPE_SHAPE),
      .data = PyTuple_GetItem(recipe, RECIPE_DATA),
  };
  PyObject* array = mtl_new_array(mtl_new_leaf(&leaf, memory));
  Py_DecRef(memory);
  return array;
}

static PyMethodDef definition = {"fresh_array", fresh_array, METH_FASTCALL, 0};

MTL_EXPORT PyObject* mtl_fresh_array(PyObject* used) { return PyCFunction_NewEx(&definition, used, 0); }
