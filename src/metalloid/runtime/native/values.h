// Conversions of Python values for launches. Functions return false for a value that does not fit;
// an exception that Python raised meanwhile stays set.
#pragma once
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "python.h"

static inline void drop(PyObject* object) {
  if (object) Py_DecRef(object);
}

static inline bool is(PyObject* object, PyObject* name, PyObject* expected) {
  PyObject* attribute = PyObject_GetAttr(object, name);
  drop(attribute);
  return attribute == expected;
}

// Whether a device runs launches at once: it has no recorder, or one that only looks at them.
static inline bool runs_at_once(PyObject* device, PyObject* recording, PyObject* observes) {
  if (is(device, recording, &_Py_NoneStruct)) return true;
  PyObject* recorder = PyObject_GetAttr(device, recording);
  const bool is_observer = recorder && is(recorder, observes, &_Py_TrueStruct);
  drop(recorder);
  return is_observer;
}

static inline bool contains(PyObject* types, PyObject* type) {
  for (Py_ssize_t i = 0, count = PyTuple_Size(types); i < count; i++)
    if (PyTuple_GetItem(types, i) == type) return true;
  return false;
}

static inline bool as_word(PyObject* number, uint64_t* word) {
  *word = PyLong_AsUnsignedLongLong(number);
  return *word != UINT64_MAX || !PyErr_Occurred();
}

// The bits of a number of a kind ('f', 'i', 'u', 'b' for truth values) and so many bytes, in the lowest ones.
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
  PyObject* integer = PyNumber_Index(number);
  if (!integer) return false;
  const int unused = 64 - 8 * (int)bytes;
  bool fits;
  if (kind == 'i') {
    const long long value = PyLong_AsLongLong(integer);
    *bits = (uint64_t)value;
    fits = (int64_t)(*bits << unused) >> unused == value && (value != -1 || !PyErr_Occurred());
  } else {
    fits = as_word(integer, bits) && *bits << unused >> unused == *bits;
    fits = fits && (kind == 'u' || *bits <= 1);
  }
  Py_DecRef(integer);
  return fits;
}

static inline bool is_integer(PyObject* value) {
  static PyObject* integer;
  if (!integer) {
    PyObject* zero = PyLong_FromLong(0);
    if (!zero) return false;
    integer = PyObject_Type(zero);
    Py_DecRef(zero);
  }
  PyObject* type = PyObject_Type(value);
  Py_DecRef(type);  // which the value holds
  return type == integer;
}

// An int, some of them, or None. A float may be equal to an int, and is no size.
static inline bool is_size(PyObject* value) {
  if (value == &_Py_NoneStruct || is_integer(value)) return true;
  const Py_ssize_t count = PyTuple_Size(value);
  for (Py_ssize_t i = 0; i < count; i++)
    if (!is_integer(PyTuple_GetItem(value, i))) return false;
  return count >= 0;
}

// What was set for these threads and this size of a threadgroup.
static inline PyObject* sizes_of(PyObject* dict, PyObject* threads, PyObject* group_size) {
  if (!is_size(threads) || !is_size(group_size)) return 0;
  PyObject* key = PyTuple_Pack(2, threads, group_size);
  if (!key) return 0;
  PyObject* value = PyDict_GetItemWithError(dict, key);
  Py_DecRef(key);
  return value;
}
