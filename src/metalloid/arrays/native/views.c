// Views, and basic slices of arrays: `x[i]`, where the index is made of int, slice, None and Ellipsis. Other
// ones, and errors, are left to `node.move` and `lowering/indexing.py`.
#include "views.h"

enum { STATE_BUFFER, STATE_IOTA, STATE_VIEW, STATE_VIEW_OP, STATE_SLICE_NAME, STATE_RESHAPE_NAME,
       STATE_BROADCAST_NAME, STATE_PERMUTE_NAME, STATE_NO_ARGS, STATE_IDS, STATE_INT, STATE_SLICE,
       STATE_ELLIPSIS };
enum { SHARED_MEMORY = 3 };  // the bits of `Memory.sharing`

static PyObject *state_, *start_, *stop_, *step_;

// Extents after slicing: of all axes, and without those of integers but with new ones.
struct selection {
  int rank, result_rank;
  bool is_full;
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
  to->is_full &= !start && step == 1 && count == extent;
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

// A leaf on the memory of another one.
static PyObject* new_leaf(PyObject* state, PyObject* node, const Py_ssize_t* extents,
                          const Py_ssize_t* strides, int rank, Py_ssize_t offset) {
  PyObject *shape = tuple_of(extents, rank), *steps = tuple_of(strides, rank);
  PyObject* first = PyLong_FromLongLong(offset);
  PyObject* layout = steps && first ? PyTuple_Pack(2, steps, first) : 0;
  const struct leaf leaf = {PyTuple_GetItem(state, STATE_BUFFER), PyTuple_GetItem(state, STATE_NO_ARGS),
                            PyTuple_GetItem(state, STATE_IDS), get(node, NODE, NODE_DTYPE), shape, layout};
  PyObject* view = shape && layout ? mtl_new_leaf(&leaf, get(node, NODE, NODE_MEMORY)) : 0;
  drop(shape), drop(steps), drop(first), drop(layout);
  return view;
}

// The strides of a leaf and its offset.
static Py_ssize_t layout_of(PyObject* node, Py_ssize_t* strides) {
  PyObject *data = get(node, NODE, NODE_DATA), *steps = PyTuple_GetItem(data, 0);
  for (Py_ssize_t i = 0; i < PyTuple_Size(steps); i++)
    strides[i] = PyLong_AsLongLong(PyTuple_GetItem(steps, i));
  return PyLong_AsLongLong(PyTuple_GetItem(data, 1));
}

// `layout.apply_view`, of a slice and then a reshape. Axes of extent 1 are the only ones that differ.
static PyObject* viewed_leaf(PyObject* state, PyObject* node, const struct selection* s) {
  Py_ssize_t steps[MAX_RANK], rest[MAX_RANK], offset = layout_of(node, steps);
  const bool is_same = is_same_shape(s);
  int k = 0;
  for (int i = 0; i < s->rank; i++) {
    offset += s->start[i] * steps[i];
    steps[i] *= s->step[i];
    if (s->count[i] != 1) rest[k++] = steps[i];
  }
  k = 0;
  for (int i = 0; i < s->result_rank && !is_same; i++) steps[i] = s->shape[i] == 1 ? 0 : rest[k++];
  return new_leaf(state, node, s->shape, steps, s->result_rank, offset);
}

// A VIEW of an expression. Takes the references to the node, the ViewOp and the shape.
static PyObject* new_view(PyObject* state, PyObject* node, PyObject* view_op, PyObject* shape) {
  PyObject* values[NODE_SLOTS] = {
      [NODE_ARGS] = PyTuple_Pack(1, node),
      [NODE_DATA] = view_op,
      [NODE_DEVICE] = new_reference(get(node, NODE, NODE_DEVICE)),
      [NODE_DTYPE] = new_reference(get(node, NODE, NODE_DTYPE)),
      [NODE_FLAGS] = new_reference(get(node, NODE, NODE_FLAGS)),
      [NODE_INLINED] = new_reference(&_Py_FalseStruct),
      [NODE_KIND] = new_reference(PyTuple_GetItem(state, STATE_VIEW)),
      [NODE_MEMORY] = new_reference(&_Py_NoneStruct),
      [NODE_SHAPE] = shape,
      [NODE_ID] = PyIter_Next(PyTuple_GetItem(state, STATE_IDS)),
  };
  Py_DecRef(node);
  return mtl_new_node(values);
}

// A ViewOp; takes the reference to its numbers, which may be null.
static PyObject* new_view_op(PyObject* state, int name, PyObject* numbers) {
  PyObject *make = PyTuple_GetItem(state, STATE_VIEW_OP), *kind = PyTuple_GetItem(state, name);
  PyObject* view_op = numbers ? PyObject_CallFunctionObjArgs(make, kind, numbers, (void*)0) : 0;
  drop(numbers);
  return view_op;
}

static PyObject* viewed_expression(PyObject* state, PyObject* node, const struct selection* s) {
  Py_ssize_t flat[3 * MAX_RANK];
  for (int i = 0; i < s->rank; i++)
    flat[3 * i] = s->start[i], flat[3 * i + 1] = s->step[i], flat[3 * i + 2] = s->count[i];
  PyObject* view = new_reference(node);
  if (!s->is_full)
    view = new_view(state, view, new_view_op(state, STATE_SLICE_NAME, tuple_of(flat, 3 * s->rank)),
                    tuple_of(s->count, s->rank));
  if (!view || is_same_shape(s)) return view;
  PyObject* shape = tuple_of(s->shape, s->result_rank);
  PyObject* view_op = shape ? new_view_op(state, STATE_RESHAPE_NAME, new_reference(shape)) : 0;
  return new_view(state, view, view_op, shape);
}

// The integers of a tuple, at most MAX_RANK; -1 for other ones.
static int integers_of(PyObject* state, PyObject* tuple, Py_ssize_t* values) {
  const Py_ssize_t count = PyTuple_Size(tuple);
  bool fits = count <= MAX_RANK;
  for (Py_ssize_t i = 0; fits && i < count; i++)
    fits = as_size(state, PyTuple_GetItem(tuple, i), &values[i]);
  return fits ? (int)count : -1;
}

// A node with axes of extent 1 repeated; null, perhaps with an error, if Python has to make it.
PyObject* mtl_broadcast(PyObject* node, PyObject* to) {
  Py_ssize_t own[MAX_RANK], shape[MAX_RANK], strides[MAX_RANK], steps[MAX_RANK] = {0};
  PyObject *state = state_, *kind = get(node, NODE, NODE_KIND);
  if (!state || kind == PyTuple_GetItem(state, STATE_IOTA)) return 0;
  if (kind != PyTuple_GetItem(state, STATE_BUFFER))
    return new_view(state, new_reference(node),
                    new_view_op(state, STATE_BROADCAST_NAME, new_reference(to)), new_reference(to));
  const int rank = integers_of(state, to, shape);
  const int own_rank = integers_of(state, get(node, NODE, NODE_SHAPE), own);
  if (rank < 0 || own_rank < 0 || own_rank > rank) return 0;
  const Py_ssize_t offset = layout_of(node, strides);
  for (int i = 0; i < own_rank; i++) steps[rank - own_rank + i] = own[i] == 1 ? 0 : strides[i];
  return new_leaf(state, node, shape, steps, rank, offset);
}

static PyObject* permuted(PyObject* state, PyObject* node, PyObject* view_op, PyObject* axes) {
  Py_ssize_t own[MAX_RANK], order[MAX_RANK], strides[MAX_RANK], shape[MAX_RANK], steps[MAX_RANK];
  const int rank = integers_of(state, get(node, NODE, NODE_SHAPE), own);
  if (rank < 0 || integers_of(state, axes, order) != rank) return 0;
  const bool is_leaf = get(node, NODE, NODE_KIND) == PyTuple_GetItem(state, STATE_BUFFER);
  const Py_ssize_t offset = is_leaf ? layout_of(node, strides) : 0;
  for (int i = 0; i < rank; i++) {
    if (order[i] < 0 || order[i] >= rank) return 0;
    shape[i] = own[order[i]];
    if (is_leaf) steps[i] = strides[order[i]];
  }
  if (is_leaf) return new_leaf(state, node, shape, steps, rank, offset);
  return new_view(state, new_reference(node), new_reference(view_op), tuple_of(shape, rank));
}

// Axes of extent 1 are removed and added. Of leaves, other reshapes are left to Python.
static PyObject* reshaped(PyObject* state, PyObject* node, PyObject* view_op, PyObject* to) {
  Py_ssize_t own[MAX_RANK], shape[MAX_RANK], strides[MAX_RANK], steps[MAX_RANK] = {0};
  const int rank = integers_of(state, to, shape);
  const int own_rank = integers_of(state, get(node, NODE, NODE_SHAPE), own);
  if (rank < 0 || own_rank < 0) return 0;
  if (get(node, NODE, NODE_KIND) != PyTuple_GetItem(state, STATE_BUFFER))
    return new_view(state, new_reference(node), new_reference(view_op), new_reference(to));
  const Py_ssize_t offset = layout_of(node, strides);
  int k = 0;
  for (int i = 0; i < rank; i++) {
    if (shape[i] == 1) continue;
    while (k < own_rank && own[k] == 1) k++;
    if (!shape[i] || k == own_rank || own[k] != shape[i]) return 0;
    steps[i] = strides[k++];
  }
  while (k < own_rank)
    if (own[k++] != 1) return 0;
  return new_leaf(state, node, shape, steps, rank, offset);
}

// moved(node, view_op): the view, unless it is a slice; None if Python has to make it.
static PyObject* moved(PyObject* state, PyObject* const* args, Py_ssize_t unused) {
  (void)unused;
  PyObject *node = args[0], *name = PyTuple_GetItem(args[1], 0), *numbers = PyTuple_GetItem(args[1], 1);
  PyObject* view = 0;
  if (get(node, NODE, NODE_KIND) == PyTuple_GetItem(state, STATE_IOTA) ||
      is_equal(numbers, get(node, NODE, NODE_SHAPE)))
    return none_unless_raised();
  if (name == PyTuple_GetItem(state, STATE_BROADCAST_NAME)) view = mtl_broadcast(node, numbers);
  if (name == PyTuple_GetItem(state, STATE_PERMUTE_NAME)) view = permuted(state, node, args[1], numbers);
  if (name == PyTuple_GetItem(state, STATE_RESHAPE_NAME)) view = reshaped(state, node, args[1], numbers);
  return view ? view : none_unless_raised();
}

// selected(array, key): an array; None for keys that Python has to read.
static PyObject* selected(PyObject* state, PyObject* const* args, Py_ssize_t unused) {
  (void)unused;
  struct selection s = {.is_full = true};
  PyObject* type = type_of(args[0]);
  PyObject* node = is_array_type(type) ? get(args[0], ARRAY, ARRAY_NODE) : 0;
  if (!node || get(node, NODE, NODE_KIND) == PyTuple_GetItem(state, STATE_IOTA) ||
      PyLong_AsLongLong(get(node, NODE, NODE_FLAGS)) & SHARED_MEMORY ||
      !read_key(state, get(node, NODE, NODE_SHAPE), args[1], &s))
    return none_unless_raised();
  PyObject* view;
  if (s.is_full && is_same_shape(&s)) view = new_reference(node);
  else if (get(node, NODE, NODE_KIND) == PyTuple_GetItem(state, STATE_BUFFER))
    view = viewed_leaf(state, node, &s);
  else view = viewed_expression(state, node, &s);
  return view ? mtl_new_array_of(type, view) : 0;
}

static PyMethodDef selected_definition = {"selected", selected, METH_FASTCALL, 0};
static PyMethodDef moved_definition = {"moved", moved, METH_FASTCALL, 0};

// The functions `moved` and `selected`.
MTL_EXPORT PyObject* mtl_views(PyObject* state) {
  state_ = new_reference(state);
  start_ = PyUnicode_InternFromString("start");
  stop_ = PyUnicode_InternFromString("stop");
  step_ = PyUnicode_InternFromString("step");
  PyObject* functions = PyTuple_New(2);
  if (!functions) return 0;
  PyTuple_SetItem(functions, 0, PyCFunction_NewEx(&moved_definition, state, 0));
  PyTuple_SetItem(functions, 1, PyCFunction_NewEx(&selected_definition, state, 0));
  return functions;
}
