// The functions of the running interpreter that our own sources call. Python's own header need not
// be on the machine; these are of its stable interface, as of 3.11.
#pragma once
#include <stdint.h>

typedef struct object PyObject;
typedef intptr_t Py_ssize_t;

typedef struct {
  const char* name;
  PyObject* (*function)(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
  int flags;
  const char* doc;
} PyMethodDef;

enum { METH_FASTCALL = 0x80 };

typedef struct {
  void* memory;
  PyObject* object;
  Py_ssize_t bytes, item_bytes;
  int is_read_only, dimensions;
  char* format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void* internal;
} Py_buffer;

enum { PyBUF_SIMPLE = 0, PyBUF_WRITABLE = 1 };

extern PyObject _Py_NoneStruct, _Py_TrueStruct;
extern PyObject* PyExc_Exception;

PyObject* PyCFunction_NewEx(PyMethodDef*, PyObject* self, PyObject* module);
void Py_IncRef(PyObject*);
void Py_DecRef(PyObject*);
PyObject* PyErr_Occurred(void);
void PyErr_Fetch(PyObject** type, PyObject** value, PyObject** trace);
int PyErr_GivenExceptionMatches(PyObject* type, PyObject* of);
void PyErr_Restore(PyObject* type, PyObject* value, PyObject* trace);
void* PyEval_SaveThread(void);
void PyEval_RestoreThread(void*);

PyObject* PyObject_Type(PyObject*);
int PyObject_IsTrue(PyObject*);
PyObject* PyObject_GetAttr(PyObject*, PyObject* name);
int PyObject_SetAttr(PyObject*, PyObject* name, PyObject* value);
int PyObject_GetBuffer(PyObject*, Py_buffer*, int flags);
void PyBuffer_Release(Py_buffer*);
PyObject* PyObject_CallNoArgs(PyObject*);
PyObject* PyObject_CallFunctionObjArgs(PyObject*, ...);  // up to a null pointer

PyObject* PyBytes_FromStringAndSize(const char*, Py_ssize_t);
char* PyBytes_AsString(PyObject*);
PyObject* PyDict_GetItemWithError(PyObject*, PyObject* key);  // borrowed
double PyFloat_AsDouble(PyObject*);
PyObject* PyFloat_FromDouble(double);
PyObject* PyList_GetItem(PyObject*, Py_ssize_t);  // borrowed
int PyList_SetSlice(PyObject*, Py_ssize_t, Py_ssize_t, PyObject*);
Py_ssize_t PyList_Size(PyObject*);
long long PyLong_AsLongLong(PyObject*);
unsigned long long PyLong_AsUnsignedLongLong(PyObject*);
PyObject* PyLong_FromLong(long);
PyObject* PyNumber_Index(PyObject*);
PyObject* PyTuple_GetItem(PyObject*, Py_ssize_t);  // borrowed
PyObject* PyTuple_Pack(Py_ssize_t, ...);
Py_ssize_t PyTuple_Size(PyObject*);
PyObject* PyUnicode_InternFromString(const char*);
