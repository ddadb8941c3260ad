// Evaluations of expressions whose plan has run before, and is bound: other ones are left to Python.
#include "graph_key.h"
#include "plan_run.h"

#include <stdlib.h>

// The items of all evaluations share, and of a known one (known_evaluations.py).
enum { STATE_PLANS, STATE_KINDS, STATE_NO_ARGS, STATE_GUARDS };
enum { GUARD_ACQUIRE, GUARD_RELEASE, GUARD_TRACES, GUARD_OBSERVERS };
enum { NEEDS_PYTHON = 4 | 32 };  // of `Node.flags`: TRACED, CHECKED
enum { KNOWN_PLAN, KNOWN_LEAVES, KNOWN_INPUTS, KNOWN_HAS_NUMBERS, KNOWN_RESULTS, KNOWN_UNSAVED,
       KNOWN_ELEMENTS, KNOWN_HELD, KNOWN_OVERWRITTEN };
enum { RESULT_NODES, RESULT_MEMORY, RESULT_DATA };

struct run {
  const struct graph* graph;
  PyObject* known;
};

static void replace(PyObject* object, int name, PyObject* value) {
  PyObject** field = slot(object, NODE, name);
  PyObject* old = *field;
  *field = new_reference(value);
  drop(old);
}

// `Node.materialize`.
static void materialize(PyObject* state, PyObject* node, PyObject* memory, PyObject* data) {
  PyObject* args = new_reference(get(node, NODE, NODE_ARGS));
  replace(node, NODE_MEMORY, memory);
  replace(node, NODE_DATA, data);
  replace(node, NODE_KIND, PyTuple_GetItem(PyTuple_GetItem(state, STATE_KINDS), KIND_BUFFER));
  replace(node, NODE_FLAGS, get(memory, MEMORY, MEMORY_SHARING));
  replace(node, NODE_ARGS, PyTuple_GetItem(state, STATE_NO_ARGS));
  Py_DecRef(args);  // last: it may free other nodes
}

// Indices of nodes of the graph.
static const uint32_t* indices_of(PyObject* known, int item, Py_ssize_t* count) {
  PyObject* bytes = PyTuple_GetItem(known, item);
  *count = PyBytes_Size(bytes) / (Py_ssize_t)sizeof(uint32_t);
  return (const uint32_t*)PyBytes_AsString(bytes);
}

// A node of the graph, or after those one that the known evaluation holds. Borrowed.
static PyObject* input_of(const struct graph* graph, PyObject* known, uint32_t index) {
  if (index < graph->count) return graph->nodes[index];
  return PyTuple_GetItem(PyTuple_GetItem(known, KNOWN_HELD), index - graph->count);
}

static PyObject* list_of(PyObject* const* nodes, Py_ssize_t count) {
  PyObject* list = PyList_New(count);
  for (Py_ssize_t i = 0; list && i < count; i++) PyList_SetItem(list, i, new_reference(nodes[i]));
  return list;
}

// Numbers of other types.
static bool pack_nodes(struct plan* plan, PyObject* frame, const struct run* run) {
  Py_ssize_t count;
  const uint32_t* inputs = indices_of(run->known, KNOWN_INPUTS, &count);
  PyObject* nodes = PyList_New(count);
  for (Py_ssize_t i = 0; nodes && i < count; i++)
    PyList_SetItem(nodes, i, new_reference(input_of(run->graph, run->known, inputs[i])));
  const bool fits = nodes && mtl_pack_by_python(plan, frame, nodes);
  drop(nodes);
  return fits;
}

static bool pack(struct plan* plan, PyObject* frame, void* context) {
  const struct run* run = context;
  Py_ssize_t unused;
  size_t count;
  const uint32_t* inputs = indices_of(run->known, KNOWN_INPUTS, &unused);
  const struct number* numbers = mtl_numbers_of(frame, &count);
  if (!numbers) return !PyErr_Occurred() && pack_nodes(plan, frame, run);
  for (size_t i = 0; i < count; i++) {
    PyObject* node = input_of(run->graph, run->known, inputs[numbers[i].index]);
    if (!mtl_write_number(&numbers[i], get(node, NODE, NODE_DATA))) return false;
  }
  return true;
}

// Of a leaf of the plan, and of the node on whose memory it is: `shift` bytes after the node's first element.
struct element {
  uint64_t alignment, item_bytes, shift;
};

// The address of the first element of a leaf, if Python need not look at it.
static bool address_of(const struct plan* plan, PyObject* node, PyObject* kind,
                       const struct element* element, uint64_t* address) {
  if (!mtl_memory_address(plan, node, kind, address)) return false;
  const long long offset = PyLong_AsLongLong(PyTuple_GetItem(get(node, NODE, NODE_DATA), 1));
  const uint64_t bytes = (uint64_t)offset * element->item_bytes + element->shift;
  // An observer reads as many bytes from an address as the memory has.
  if (bytes && mtl_is_recording(plan)) return false;
  *address += bytes;
  return *address % element->alignment == 0;
}

// The memories of leaves that a plan in a stream overwrites; null if there are none, or with an error.
static PyObject* overwritten_by(const struct plan* plan, const struct graph* graph, PyObject* known) {
  Py_ssize_t count, unused;
  const uint32_t* overwritten = indices_of(known, KNOWN_OVERWRITTEN, &count);
  const uint32_t* leaves = indices_of(known, KNOWN_LEAVES, &unused);
  if (!count || !has_stream(plan)) return 0;
  PyObject* list = PyList_New(count);
  for (Py_ssize_t i = 0; list && i < count; i++) {
    PyObject* node = input_of(graph, known, leaves[overwritten[i]]);
    PyList_SetItem(list, i, new_reference(get(node, NODE, NODE_MEMORY)));
  }
  return list;
}

static bool has_run(PyObject* state, PyObject* known, struct plan* plan, const struct graph* graph) {
  PyObject* memories[MAX_ADDRESSES];
  PyObject *kind = PyTuple_GetItem(PyTuple_GetItem(state, STATE_KINDS), KIND_BUFFER);
  PyObject* results = PyTuple_GetItem(known, KNOWN_RESULTS);
  uint64_t addresses[MAX_ADDRESSES];
  Py_ssize_t count;
  const uint32_t* leaves = indices_of(known, KNOWN_LEAVES, &count);
  const struct element* elements =
      (const void*)PyBytes_AsString(PyTuple_GetItem(known, KNOWN_ELEMENTS));
  for (Py_ssize_t i = 0; i < count; i++)
    if (!address_of(plan, input_of(graph, known, leaves[i]), kind, &elements[i], &addresses[i]))
      return false;
  struct run run = {graph, known};
  const bool has_numbers = PyTuple_GetItem(known, KNOWN_HAS_NUMBERS) == &_Py_TrueStruct;
  PyObject* overwritten = overwritten_by(plan, graph, known);
  const bool is_run = !PyErr_Occurred() && mtl_run_plan(plan, addresses, has_numbers ? pack : 0, &run,
                                                        memories, overwritten);
  drop(overwritten);
  if (!is_run) return false;
  const uint32_t* unsaved = indices_of(known, KNOWN_UNSAVED, &count);
  for (Py_ssize_t i = 0; i < count; i++)
    replace(graph->nodes[unsaved[i]], NODE_INLINED, &_Py_TrueStruct);
  // Memory of leaves, which materializing may free, is that of results if it was overwritten.
  Py_ssize_t owned = (Py_ssize_t)plan->head->results;
  const Py_ssize_t leaf_count = (Py_ssize_t)plan->head->leaves;
  for (Py_ssize_t i = 0; i < leaf_count; i++)
    memories[owned++] = new_reference(get(input_of(graph, known, leaves[i]), NODE, NODE_MEMORY));
  for (Py_ssize_t i = 0; i < PyTuple_Size(results); i++) {
    PyObject *result = PyTuple_GetItem(results, i), *nodes = PyTuple_GetItem(result, RESULT_NODES);
    PyObject* memory = memories[PyLong_AsLongLong(PyTuple_GetItem(result, RESULT_MEMORY))];
    for (Py_ssize_t k = 0; k < PyTuple_Size(nodes); k++)
      materialize(state, graph->nodes[PyLong_AsLongLong(PyTuple_GetItem(nodes, k))], memory,
                  PyTuple_GetItem(result, RESULT_DATA));
  }
  for (Py_ssize_t i = 0; i < owned; i++) Py_DecRef(memories[i]);
  return true;
}

// Memory for a graph, which is too large for the stacks of some threads. The lock of the interpreter
// guards the spare one, which the next call uses.
static struct graph* spare;

static PyObject* with_graph(PyObject* state, PyObject* roots,
                            PyObject* (*use)(PyObject*, PyObject*, struct graph*)) {
  struct graph* graph = spare ? spare : malloc(sizeof *graph);
  spare = 0;
  if (!graph) return none_unless_raised();
  PyObject* result = use(state, roots, graph);
  if (spare) free(graph);
  else spare = graph;
  return result;
}

static PyObject* evaluate_graph(PyObject* state, PyObject* roots, struct graph* graph) {
  const bool is_walked = mtl_walk_graph(PyTuple_GetItem(state, STATE_KINDS), roots, graph);
  PyObject *key = is_walked ? mtl_graph_key(graph) : 0, *result = 0;
  drop(graph->others);
  if (!key) return none_unless_raised();
  PyObject* known = PyDict_GetItemWithError(PyTuple_GetItem(state, STATE_PLANS), key);
  Py_DecRef(key);
  if (!known) return PyErr_Occurred() ? 0 : new_reference(&_Py_FalseStruct);
  Py_IncRef(known);  // others may clear the plans
  PyObject* capsule = PyTuple_GetItem(known, KNOWN_PLAN);
  struct plan* plan = capsule == &_Py_NoneStruct ? 0 : mtl_plan_of(capsule);
  if (plan && has_run(state, known, plan, graph)) {
    result = new_reference(&_Py_TrueStruct);
  } else if (!PyErr_Occurred() && (!plan || has_stream(plan))) {
    PyObject* nodes = list_of(graph->nodes, graph->count);
    result = nodes ? PyTuple_Pack(2, known, nodes) : 0;
    drop(nodes);
  }
  Py_DecRef(known);
  return result ? result : none_unless_raised();
}

static PyObject* key_of_graph(PyObject* state, PyObject* roots, struct graph* graph) {
  const bool is_walked = mtl_walk_graph(PyTuple_GetItem(state, STATE_KINDS), roots, graph);
  PyObject *key = is_walked ? mtl_graph_key(graph) : 0, *result = 0;
  PyObject* nodes = key ? list_of(graph->nodes, graph->count) : 0;
  PyObject* leaves = nodes ? PyLong_FromLongLong(graph->distinct_leaves) : 0;
  if (leaves) result = PyTuple_Pack(3, key, nodes, leaves);
  drop(graph->others), drop(key), drop(nodes), drop(leaves);
  return result ? result : none_unless_raised();
}

// evaluate(roots): True, with the values of the roots; False if their structure is not known; None for
// those that Python has to evaluate; and the known evaluation and all nodes if only its run needs Python.
static PyObject* evaluate(PyObject* state, PyObject* const* args, Py_ssize_t unused) {
  (void)unused;
  return with_graph(state, args[0], evaluate_graph);
}

// graph_key(roots): the key of an evaluation, the nodes that it numbers, and the number of different ones
// without operands; None if it has no key.
static PyObject* graph_key(PyObject* state, PyObject* const* args, Py_ssize_t unused) {
  (void)unused;
  return with_graph(state, args[0], key_of_graph);
}

static bool is_expression(PyObject* state, PyObject* node) {
  PyObject* kind = PyTuple_GetItem(PyTuple_GetItem(state, STATE_KINDS), KIND_BUFFER);
  return get(node, NODE, NODE_KIND) != kind;
}

static PyObject* run_;

// Runs a known evaluation by Python, from a tuple of it and of its nodes, which it drops.
static PyObject* run_known(PyObject* known) {
  if (!run_) run_ = PyUnicode_InternFromString("run");
  PyObject* done = PyObject_CallMethodObjArgs(PyTuple_GetItem(known, 0), run_, PyTuple_GetItem(known, 1),
                                              &_Py_TrueStruct, (void*)0);
  Py_DecRef(known);
  return done;
}

// The state of the functions, which live as long as the process; null before there are any.
static PyObject* state_;

bool mtl_evaluate_alone(PyObject* node) {
  if (!state_ || !is_expression(state_, node)) return false;
  PyObject* guards = PyTuple_GetItem(state_, STATE_GUARDS);
  if (PyLong_AsLongLong(get(node, NODE, NODE_FLAGS)) & NEEDS_PYTHON ||
      PySet_Size(PyTuple_GetItem(guards, GUARD_TRACES)) ||
      PyList_Size(PyTuple_GetItem(guards, GUARD_OBSERVERS)))
    return false;
  PyObject* locked = PyObject_CallNoArgs(PyTuple_GetItem(guards, GUARD_ACQUIRE));
  if (!locked) return false;
  Py_DecRef(locked);
  PyObject *type, *value, *trace, *done = 0;
  if (is_expression(state_, node)) {  // another thread may have evaluated it meanwhile
    PyObject* roots = list_of(&node, 1);
    done = roots ? with_graph(state_, roots, evaluate_graph) : 0;
    drop(roots);
    if (done && type_of(done) == type_of(guards)) done = run_known(done);
  }
  PyErr_Fetch(&type, &value, &trace);
  PyObject* released = PyObject_CallNoArgs(PyTuple_GetItem(guards, GUARD_RELEASE));
  const bool is_done = done == &_Py_TrueStruct;
  drop(done), drop(released);
  if (type) PyErr_Restore(type, value, trace);
  return is_done;
}

// evaluate_alone(root): True, with the value of a root for which nothing in Python is needed.
static PyObject* evaluate_alone(PyObject* self, PyObject* const* args, Py_ssize_t unused) {
  (void)self, (void)unused;
  const bool is_done = mtl_evaluate_alone(args[0]);
  if (PyErr_Occurred()) return 0;
  return new_reference(is_done ? &_Py_TrueStruct : &_Py_FalseStruct);
}

static PyMethodDef alone_definition = {"evaluate_alone", evaluate_alone, METH_FASTCALL, 0};
static PyMethodDef evaluate_definition = {"evaluate", evaluate, METH_FASTCALL, 0};
static PyMethodDef key_definition = {"graph_key", graph_key, METH_FASTCALL, 0};

// The functions `evaluate`, `graph_key` and `evaluate_alone`.
MTL_EXPORT PyObject* mtl_evaluation(PyObject* state) {
  PyObject* functions = PyTuple_New(3);
  if (!functions) return 0;
  state_ = new_reference(state);
  PyTuple_SetItem(functions, 0, PyCFunction_NewEx(&evaluate_definition, state, 0));
  PyTuple_SetItem(functions, 1, PyCFunction_NewEx(&key_definition, state, 0));
  PyTuple_SetItem(functions, 2, PyCFunction_NewEx(&alone_definition, state, 0));
  return functions;
}
