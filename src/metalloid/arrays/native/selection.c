// Basic slices of arrays: `x[i]`, where the index is made of int, slice, None and Ellipsis. Other indices, and
// errors, are left to `lowering/indexing.py`.
#include "layouts.h"

enum { STATE_BUFFER, STATE_IOTA, STATE_VIEW, STATE_VIEW_OP, STATE_SLICE_NAME, STATE_RESHAPE_NAME,
       STATE_NO_ARGS, STATE_IDS, STATE_INT, STATE_SLICE, STATE_ELLIPSIS };
enum { MAX_RANK = 16, SHARED_MEMORY = 3 };  // the bits of `Memory.sharing`

static PyObject *start_, *stop_, *step_;

// Extents after slicing: of all axes, and without those of integers but with new ones.
struct selection {
  int rank, result_rank;
  bool is_whole;
  Py_ssize_t start[MAX_RANK], step[MAX_RANK], count[MAX_RANK], shape[MAX_RANK];
};

static PyObject* tuple_of(const Py_ssize_t* values, int count) {
  PyObject* tuple = PyTuple_New(count);
  for (int i = 0; tuple && i < count; i++) PyTuple_SetItem(tuple, i, PyLong_FromLongLong(values[i]));
  return tuple;
}

static bool as_size(PyObject* state, PyObject* value, Py_ssize_t* size) {
  if (type_of(value) != PyTuple_GetItem(state, STATE_INT)) return false;
  *size = PyLong_AsLongLong(value);
  if (*size != -1 || !PyErr_Occurred()) return true;
  PyErr_Clear();  // the error for an index is Python's
  return false;
}

// Whether an attribute of a slice is None or an int.
static bool is_plain(PyObject* state, PyObject* slice, PyObject* name) {
  PyObject* value = PyObject_GetAttr(slice, name);
  const bool is_so = value && (value == &_Py_NoneStruct ||
                               type_of(value) == PyTuple_GetItem(state, STATE_INT));
  drop(value);
  return is_so;
}

static bool add_axis(PyObject* state, PyObject* item, Py_ssize_t extent, struct selection* to) {
  const int axis = to->rank++;
  Py_ssize_t start = 0, stop = extent, step = 1, count = extent;
  if (item && type_of(item) == PyTuple_GetItem(state, STATE_INT)) {
    if (!as_size(state, item, &start) || start < -extent || start >= extent) return false;
    start += start < 0 ? extent : 0, count = 1;
  } else {
    if (to->result_rank == MAX_RANK) return false;
    if (item && (!is_plain(state, item, start_) || !is_plain(state, item, stop_) ||
                 !is_plain(state, item, step_) || PySlice_Unpack(item, &start, &stop, &step)))
      return false;
    if (item) count = PySlice_AdjustIndices(extent, &start, &stop, step);
    if (count <= 1) start = count ? start : 0, step = 1;
    to->shape[to->result_rank++] = count;
  }
  to->is_whole &= !start && step == 1 && count == extent;
  to->start[axis] = start, to->step[axis] = step, to->count[axis] = count;
  return count > 0;  // the strides of empty arrays are left to Python
}

static bool read_key(PyObject* state, PyObject* shape, PyObject* key, struct selection* to) {
  const bool is_tuple = type_of(key) == type_of(shape);
  const Py_ssize_t items = is_tuple ? PyTuple_Size(key) : 1, rank = PyTuple_Size(shape);
  PyObject* ellipsis = PyTuple_GetItem(state, STATE_ELLIPSIS);
  Py_ssize_t used = 0, extents[MAX_RANK];
  if (rank > MAX_RANK) return false;
  for (Py_ssize_t i = 0; i < rank; i++)
    if (!as_size(state, PyTuple_GetItem(shape, i), &extents[i])) return false;
  bool is_open = true;  // no Ellipsis yet
  for (Py_ssize_t i = 0; i < items; i++) {
    PyObject *item = is_tuple ? PyTuple_GetItem(key, i) : key, *type = type_of(item);
    if (item == ellipsis && !is_open) return false;
    is_open &= item != ellipsis;
    if (item == ellipsis || item == &_Py_NoneStruct) continue;
    if (type != PyTuple_GetItem(state, STATE_INT) && type != PyTuple_GetItem(state, STATE_SLICE))
      return false;
    used++;
  }
  if (used > rank) return false;
  for (Py_ssize_t i = 0; i < items; i++) {
    PyObject* item = is_tuple ? PyTuple_GetItem(key, i) : key;
    if (item == ellipsis) {
      for (Py_ssize_t k = used; k < rank; k++)
        if (!add_axis(state, 0, extents[to->rank], to)) return false;
    } else if (item == &_Py_NoneStruct) {
      if (to->result_rank == MAX_RANK) return false;
      to->shape[to->result_rank++] = 1;
    } else if (!add_axis(state, item, extents[to->rank], to)) {
      return false;
    }
  }
  while (to->rank < rank)
    if (!add_axis(state, 0, extents[to->rank], to)) return false;
  return true;
}

// Whether removed and new axes leave the shape as it is.
static bool is_same_shape(const struct selection* s) {
  if (s->rank != s->result_rank) return false;
  for (int i = 0; i < s->rank; i++)
    if (s->count[i] != s->shape[i]) return false;
  return true;
}

// `layout.apply_view`, of a slice and then a reshape. Axes of extent 1 are the only ones that differ.
static PyObject* viewed_leaf(PyObject* state, PyObject* node, const struct selection* s) {
  PyObject *data = get(node, NODE, NODE_DATA), *strides = PyTuple_GetItem(data, 0);
  Py_ssize_t offset = PyLong_AsLongLong(PyTuple_GetItem(data, 1)), steps[MAX_RANK], kept[MAX_RANK];
  const bool is_same = is_same_shape(s);
  int k = 0;
  for (int i = 0; i < s->rank; i++) {
    const Py_ssize_t stride = PyLong_AsLongLong(PyTuple_GetItem(strides, i));
    offset += s->start[i] * stride;
    steps[i] = stride * s->step[i];
    if (s->count[i] != 1) kept[k++] = steps[i];
  }
  k = 0;
  for (int i = 0; i < s->result_rank && !is_same; i++) steps[i] = s->shape[i] == 1 ? 0 : kept[k++];
  PyObject *shape = tuple_of(s->shape, s->result_rank), *own = tuple_of(steps, s->result_rank);
  PyObject* first = PyLong_FromLongLong(offset);
  PyObject* layout = own && first ? PyTuple_Pack(2, own, first) : 0;
  const struct leaf leaf = {PyTuple_GetItem(state, STATE_BUFFER), PyTuple_GetItem(state, STATE_NO_ARGS),
                            PyTuple_GetItem(state, STATE_IDS), get(node, NODE, NODE_DTYPE), shape, layout};
  PyObject* view = shape && layout ? mtl_new_leaf(&leaf, get(node, NODE, NODE_MEMORY)) : 0;
  drop(shape), drop(own), drop(first), drop(layout);
  return view;
}

// A VIEW of an expression, with the numbers of its ViewOp and its shape. Takes the references.
static PyObject* new_view(PyObject* state, PyObject* node, int name, PyObject* numbers, PyObject* shape) {
  PyObject* make = PyTuple_GetItem(state, STATE_VIEW_OP);
  PyObject* values[NODE_SLOTS] = {
      [NODE_ARGS] = PyTuple_Pack(1, node),
      [NODE_DATA] = numbers ? PyObject_CallFunctionObjArgs(make, PyTuple_GetItem(state, name), numbers,
                                                           (void*)0)
                            : 0,
      [NODE_DEVICE] = new_reference(get(node, NODE, NODE_DEVICE)),
      [NODE_DTYPE] = new_reference(get(node, NODE, NODE_DTYPE)),
      [NODE_FLAGS] = new_reference(get(node, NODE, NODE_FLAGS)),
      [NODE_INLINED] = new_reference(&_Py_FalseStruct),
      [NODE_KIND] = new_reference(PyTuple_GetItem(state, STATE_VIEW)),
      [NODE_MEMORY] = new_reference(&_Py_NoneStruct),
      [NODE_SHAPE] = shape,
      [NODE_ID] = PyIter_Next(PyTuple_GetItem(state, STATE_IDS)),
  };
  drop(numbers), Py_DecRef(node);
  return mtl_new_node(values);
}

static PyObject* viewed_expression(PyObject* state, PyObject* node, const struct selection* s) {
  Py_ssize_t flat[3 * MAX_RANK];
  for (int i = 0; i < s->rank; i++)
    flat[3 * i] = s->start[i], flat[3 * i + 1] = s->step[i], flat[3 * i + 2] = s->count[i];
  PyObject* view = new_reference(node);
  if (!s->is_whole)
    view = new_view(state, view, STATE_SLICE_NAME, tuple_of(flat, 3 * s->rank), tuple_of(s->count, s->rank));
  if (!view || is_same_shape(s)) return view;
  PyObject* shape = tuple_of(s->shape, s->result_rank);
  return shape ? new_view(state, view, STATE_RESHAPE_NAME, new_reference(shape), shape) : 0;
}

// selected(array, key): an array; None for keys that Python has to read.
static PyObject* selected(PyObject* state, PyObject* const* args, Py_ssize_t unused) {
  (void)unused;
  struct selection s = {.is_whole = true};
  PyObject* node = is_instance(args[0], ARRAY) ? get(args[0], ARRAY, ARRAY_NODE) : 0;
  if (!node || get(node, NODE, NODE_KIND) == PyTuple_GetItem(state, STATE_IOTA) ||
      PyLong_AsLongLong(get(node, NODE, NODE_FLAGS)) & SHARED_MEMORY ||
      !read_key(state, get(node, NODE, NODE_SHAPE), args[1], &s))
    return none_unless_raised();
  PyObject* view;
  if (s.is_whole && is_same_shape(&s)) view = new_reference(node);
  else if (get(node, NODE, NODE_KIND) == PyTuple_GetItem(state, STATE_BUFFER))
    view = viewed_leaf(state, node, &s);
  else view = viewed_expression(state, node, &s);
  return view ? mtl_new_array(view) : 0;
}

static PyMethodDef definition = {"selected", selected, METH_FASTCALL, 0};

MTL_EXPORT PyObject* mtl_selection(PyObject* state) {
  start_ = PyUnicode_InternFromString("start");
  stop_ = PyUnicode_InternFromString("stop");
  step_ = PyUnicode_InternFromString("step");
  return PyCFunction_NewEx(&definition, state, 0);
}
