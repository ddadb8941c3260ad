#pragma once
#include "layouts.h"

enum { MAX_NODES = 4096, MAX_KEY_WORDS = 8 * MAX_NODES, FIRST_TABLE = 1024,
       NODE_TABLE = 2 * MAX_NODES };

// The constants of node.py that native functions use, and the names of primitives that keys can have.
enum { KIND_BUFFER, KIND_CONSTANT, KIND_ELEMENTWISE, KIND_CUSTOM_CALL, KIND_PRIMITIVE, KIND_IOTA,
       STRUCTURAL };

// The nodes below some roots, in the order in which they are reached, and the key of their structure.
// Graphs with the same key differ only in the values of constants, and in the memory and offsets of leaves:
// the key tells which ones are equal, and which leaves share memory.
struct graph {
  uint32_t count, words, leaves, distinct_leaves, table;  // table: used elements of `index`
  bool has_primitives;
  PyObject* others;  // a list of the data of nodes that are not elementwise, or null
  PyObject* nodes[MAX_NODES];  // borrowed from the roots
  uint16_t leaf[MAX_NODES];  // indices of nodes without operands
  uint16_t index[NODE_TABLE];  // by hash of the address, 1 + the index of a node
  uint64_t key[MAX_KEY_WORDS];
};

// False, perhaps with an error, if there are more nodes, or nodes of other kinds. `others` is a reference
// that the caller drops.
bool mtl_walk_graph(PyObject* kinds, PyObject* roots, struct graph* graph);

// The key as a Python object; null with an error.
PyObject* mtl_graph_key(const struct graph* graph);

// Evaluates a node whose plan has run before, with the lock of evaluations, as far as nothing in Python is
// needed. False if Python has to do it, or with an error (evaluation.c).
bool mtl_evaluate_alone(PyObject* node);
