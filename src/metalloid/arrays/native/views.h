#pragma once
#include "layouts.h"

enum { MAX_RANK = 16 };

// A node with axes of extent 1 repeated, and new ones before; null, perhaps with an error, if Python has to
// make it.
PyObject* mtl_broadcast(PyObject* node, PyObject* shape);
