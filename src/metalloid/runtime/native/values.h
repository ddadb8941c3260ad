// Values of Python's as launches want them. Whoever finds one that does not fit says so by false;
// what Python raised on the way is an error that is set.
#pragma once
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "python.h"

static inline void drop(PyObject* object) {
  if (object) Py_DecRef(object);
}

static inline bool is(PyObject* object, PyObject* name, PyObject* expected) {
  PyObject* found = PyObject_GetAttr(object, name);
  drop(found);
  return found == expected;
}

static inline bool as_word(PyObject* number, uint64_t* word) {
  *word = PyLong_AsUnsignedLongLong(number);
  return *word != UINT64_MAX || !PyErr_Occurred();
}

// The bits of a number of a kind ('f', 'i', 'u') and so many bytes, in the lowest ones.
static inline bool bits_of(uint32_t kind, uint32_t bytes, PyObject* number, uint64_t* bits) {
  if (kind == 'f') {
    const double value = PyFloat_AsDouble(number);
    if (value == -1 && PyErr_Occurred()) return false;
    const float rounded = (float)value;
    if (bytes == 4 && isinf(rounded) && !isinf(value)) return false;
    if (bytes == 4) memcpy(bits, &rounded, 4);
    else memcpy(bits, &value, 8);
    return true;
  }
  PyObject* whole = PyNumber_Index(number);
  if (!whole) return false;
  const int unused = 64 - 8 * (int)bytes;
  bool fits;
  if (kind == 'i') {
    const long long value = PyLong_AsLongLong(whole);
    *bits = (uint64_t)value;
    fits = (int64_t)(*bits << unused) >> unused == value && (value != -1 || !PyErr_Occurred());
  } else {
    fits = as_word(whole, bits) && *bits << unused >> unused == *bits;
  }
  Py_DecRef(whole);
  return fits;
}

// What was set behind a key of two.
static inline PyObject* item_of(PyObject* dict, PyObject* first, PyObject* second) {
  PyObject* key = PyTuple_Pack(2, first, second);
  if (!key) return 0;
  PyObject* found = PyDict_GetItemWithError(dict, key);
  Py_DecRef(key);
  return found;
}
