// Keys of graphs, by which evaluations find their plan. The traversal makes no Python objects.
#include "graph_key.h"

enum { HAS_PRIMITIVES = 8 };  // of `Node.flags`

static PyObject* name_;

static bool add_word(struct graph* graph, uint64_t word) {
  if (graph->words == MAX_KEY_WORDS) return false;
  graph->key[graph->words++] = word;
  return true;
}

// The element of the table that has a node, or that is free for it.
static uint16_t* known_index(struct graph* graph, PyObject* node) {
  const uint64_t hash = ((uintptr_t)node >> 4) * 0x9E3779B97F4A7C15u >> 32;
  for (uint64_t k = hash;; k++) {
    uint16_t* known = &graph->index[k % graph->table];
    if (!*known || graph->nodes[*known - 1] == node) return known;
  }
}

// Most graphs are small, and clearing the table takes time.
static void resize_table(struct graph* graph, uint32_t size) {
  graph->table = size;
  memset(graph->index, 0, size * sizeof *graph->index);
  for (uint32_t i = 0; i < graph->count; i++)
    *known_index(graph, graph->nodes[i]) = (uint16_t)(i + 1);
}

// The index of a node, which is reached now or was before; -1 if there are too many.
static int index_of(struct graph* graph, PyObject* node) {
  uint16_t* known = known_index(graph, node);
  if (*known) return *known - 1;
  if (graph->count == MAX_NODES) return -1;
  if (2 * graph->count == graph->table) {
    resize_table(graph, NODE_TABLE);
    known = known_index(graph, node);
  }
  graph->nodes[graph->count++] = node;
  *known = (uint16_t)graph->count;
  return *known - 1;
}

static bool add_integers(struct graph* graph, PyObject* tuple) {
  const Py_ssize_t count = PyTuple_Size(tuple);
  bool fits = add_word(graph, (uint64_t)count);
  for (Py_ssize_t i = 0; i < count; i++)
    fits = fits && add_word(graph, (uint64_t)PyLong_AsLongLong(PyTuple_GetItem(tuple, i)));
  return fits;
}

// The number of operands and their indices, four in a word.
static bool add_operands(struct graph* graph, PyObject* args) {
  const Py_ssize_t count = PyTuple_Size(args);
  uint64_t word = (uint64_t)count;
  for (Py_ssize_t i = 0; i < count; i++) {
    const int index = index_of(graph, PyTuple_GetItem(args, i));
    if (index < 0 || count > MAX_NODES) return false;
    const int offset = (int)(i + 1) % 4;
    if (!offset && !add_word(graph, word)) return false;
    word = (offset ? word : 0) | (uint64_t)index << 16 * offset;
  }
  return add_word(graph, word);
}

static bool add_other(struct graph* graph, PyObject* node) {
  if (!graph->others) graph->others = PyList_New(0);
  return graph->others && !PyList_Append(graph->others, get(node, NODE, NODE_DATA)) &&
         add_integers(graph, get(node, NODE, NODE_SHAPE));
}

// Whether the lowering of a primitive depends only on the structure.
static bool is_structural(PyObject* kinds, PyObject* primitive) {
  PyObject* name = PyObject_GetAttr(primitive, name_);
  const bool is_so = name && PySet_Contains(PyTuple_GetItem(kinds, STRUCTURAL), name) == 1;
  drop(name);
  return is_so;
}

// Whether `LinearizedGraph` merges two nodes without operands, of one kind.
static bool is_same_leaf(PyObject* a, PyObject* b, bool is_constant) {
  PyObject *data = get(a, NODE, NODE_DATA), *other = get(b, NODE, NODE_DATA);
  if (get(a, NODE, NODE_DTYPE) != get(b, NODE, NODE_DTYPE) ||
      get(a, NODE, NODE_MEMORY) != get(b, NODE, NODE_MEMORY))
    return false;
  if (is_constant) return is_equal(data, other) && PyObject_IsTrue(data) == 1;
  return is_equal(data, other) && is_equal(get(a, NODE, NODE_SHAPE), get(b, NODE, NODE_SHAPE));
}

static long long offset_of(PyObject* leaf) {
  return PyLong_AsLongLong(PyTuple_GetItem(get(leaf, NODE, NODE_DATA), 1));
}

// Which earlier node a node without operands is equal to. Primitives may be replaced by views of leaves,
// which are equal to other leaves, depending on where these are in memory.
static bool add_identity(PyObject* kinds, struct graph* graph, uint32_t index) {
  PyObject *node = graph->nodes[index], *kind = get(node, NODE, NODE_KIND);
  const bool is_constant = kind == PyTuple_GetItem(kinds, KIND_CONSTANT);
  PyObject* memory = get(node, NODE, NODE_MEMORY);
  uint32_t same = index;
  bool fits = true, is_near = memory == &_Py_NoneStruct || !graph->has_primitives;
  for (uint32_t i = 0; i < graph->leaves && same == index; i++) {
    PyObject* earlier = graph->nodes[graph->leaf[i]];
    if (get(earlier, NODE, NODE_KIND) != kind) continue;
    if (is_same_leaf(earlier, node, is_constant)) same = graph->leaf[i];
    if (is_near || get(earlier, NODE, NODE_MEMORY) != memory) continue;
    is_near = true;
    fits = add_word(graph, 1 + (uint64_t)graph->leaf[i]) &&
           add_word(graph, (uint64_t)(offset_of(node) - offset_of(earlier)));
  }
  graph->distinct_leaves += same == index;
  graph->leaf[graph->leaves++] = (uint16_t)index;
  return fits && add_word(graph, same);
}

// Operations, types and kinds live as long as the process, or as the plan.
static bool add_node(PyObject* kinds, struct graph* graph, uint32_t index) {
  PyObject* node = graph->nodes[index];
  PyObject *kind = get(node, NODE, NODE_KIND), *data = get(node, NODE, NODE_DATA);
  const bool is_inlined = get(node, NODE, NODE_INLINED) == &_Py_TrueStruct;
  const bool is_elementwise = kind == PyTuple_GetItem(kinds, KIND_ELEMENTWISE);
  const bool fits = add_word(graph, (uintptr_t)(is_elementwise ? data : kind)) &&
                    add_word(graph, (uintptr_t)get(node, NODE, NODE_DTYPE) | is_inlined);
  if (!fits || kind == PyTuple_GetItem(kinds, KIND_CUSTOM_CALL)) return false;
  if (kind == PyTuple_GetItem(kinds, KIND_PRIMITIVE) && !is_structural(kinds, data)) return false;
  if (kind == PyTuple_GetItem(kinds, KIND_CONSTANT)) return add_identity(kinds, graph, index);
  const bool is_iota = kind == PyTuple_GetItem(kinds, KIND_IOTA);
  if (is_iota || kind == PyTuple_GetItem(kinds, KIND_BUFFER))
    return add_integers(graph, get(node, NODE, NODE_SHAPE)) &&
           add_integers(graph, PyTuple_GetItem(data, 0)) &&
           (!is_iota || add_word(graph, (uint64_t)offset_of(node))) &&
           add_identity(kinds, graph, index);
  PyObject* args = get(node, NODE, NODE_ARGS);
  if (PyTuple_Size(args) == 0) return false;
  return (is_elementwise || add_other(graph, node)) && add_operands(graph, args);
}

bool mtl_walk_graph(PyObject* kinds, PyObject* roots, struct graph* graph) {
  graph->count = graph->words = graph->leaves = graph->distinct_leaves = 0;
  graph->others = 0;
  graph->has_primitives = false;
  if (!name_) name_ = PyUnicode_InternFromString("name");
  resize_table(graph, FIRST_TABLE);
  for (Py_ssize_t i = 0; i < PyList_Size(roots); i++) {
    PyObject* root = PyList_GetItem(roots, i);
    if (index_of(graph, root) < 0) return false;
    graph->has_primitives |= PyLong_AsLongLong(get(root, NODE, NODE_FLAGS)) & HAS_PRIMITIVES;
  }
  bool fits = graph->count && add_word(graph, graph->count) &&
              add_word(graph, (uintptr_t)get(graph->nodes[0], NODE, NODE_DEVICE));
  for (uint32_t i = 0; fits && i < graph->count; i++) fits = add_node(kinds, graph, i);
  return fits;
}

PyObject* mtl_graph_key(const struct graph* graph) {
  PyObject* words = PyBytes_FromStringAndSize((const char*)graph->key, 8 * (Py_ssize_t)graph->words);
  if (!words || !graph->others) return words;
  const Py_ssize_t count = PyList_Size(graph->others);
  PyObject* key = PyTuple_New(1 + count);
  if (key) PyTuple_SetItem(key, 0, words);
  else Py_DecRef(words);
  for (Py_ssize_t i = 0; key && i < count; i++)
    PyTuple_SetItem(key, 1 + i, new_reference(PyList_GetItem(graph->others, i)));
  return key;
}
