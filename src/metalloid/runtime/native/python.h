// The functions of the running interpreter that our own sources call. Python's own header need not
// be on the machine; these are of its stable interface, as of 3.11.
#pragma once
#include <stddef.h>
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

typedef struct {
  int slot;
  void* function;
} PyType_Slot;

typedef struct {
  const char* name;
  int object_bytes, item_bytes;
  unsigned flags;
  PyType_Slot* slots;
} PyType_Spec;

enum { PyBUF_SIMPLE = 0, PyBUF_WRITABLE = 1, PyBUF_FULL_RO = 0x11c };
enum { Py_bf_getbuffer = 1, Py_tp_call = 50, Py_tp_dealloc = 52 };
enum { Py_TPFLAGS_DEFAULT = 1 << 18 };

extern PyObject _Py_NoneStruct, _Py_TrueStruct, _Py_FalseStruct;
extern PyObject* PyExc_Exception;

void* PyCFunction_GetFunction(PyObject*);
PyObject* PyCFunction_GetSelf(PyObject*);  // borrowed
PyObject* PyCFunction_NewEx(PyMethodDef*, PyObject* self, PyObject* module);
void Py_IncRef(PyObject*);
void Py_DecRef(PyObject*);
void PyErr_Clear(void);
PyObject* PyErr_Occurred(void);
void PyErr_Fetch(PyObject** type, PyObject** value, PyObject** trace);
int PyErr_GivenExceptionMatches(PyObject* type, PyObject* of);
void PyErr_NormalizeException(PyObject** type, PyObject** value, PyObject** trace);
void PyErr_Restore(PyObject* type, PyObject* value, PyObject* trace);
void* PyEval_SaveThread(void);
void PyEval_RestoreThread(void*);

PyObject* PyObject_Init(PyObject*, PyObject* type);
PyObject* PyObject_Type(PyObject*);
int PyObject_IsTrue(PyObject*);
int PyObject_RichCompareBool(PyObject*, PyObject*, int operation);
PyObject* PyObject_GetAttr(PyObject*, PyObject* name);
int PyObject_SetAttr(PyObject*, PyObject* name, PyObject* value);
int PyObject_GetBuffer(PyObject*, Py_buffer*, int flags);
int PyBuffer_FillInfo(Py_buffer*, PyObject* exporter, void*, Py_ssize_t, int is_read_only, int flags);
void PyBuffer_Release(Py_buffer*);
void PyObject_Free(void*);
PyObject* PyObject_Call(PyObject*, PyObject* arguments, PyObject* keywords);  // keywords may be null
PyObject* PyObject_CallMethodObjArgs(PyObject*, PyObject* name, ...);  // up to a null pointer
PyObject* PyObject_CallNoArgs(PyObject*);
PyObject* PyObject_GetItem(PyObject*, PyObject*);
PyObject* PyObject_CallFunctionObjArgs(PyObject*, ...);  // up to a null pointer

char* PyByteArray_AsString(PyObject*);
Py_ssize_t PyByteArray_Size(PyObject*);
PyObject* PyBytes_FromStringAndSize(const char*, Py_ssize_t);
char* PyBytes_AsString(PyObject*);
Py_ssize_t PyBytes_Size(PyObject*);
void* PyCapsule_GetPointer(PyObject*, const char* name);
int PyCapsule_IsValid(PyObject*, const char* name);
PyObject* PyCapsule_New(void*, const char* name, void (*destructor)(PyObject*));
PyObject* PyDict_New(void);
void PyDict_Clear(PyObject*);
Py_ssize_t PyDict_Size(PyObject*);
PyObject* PyDict_GetItemWithError(PyObject*, PyObject* key);  // borrowed
int PyDict_SetItem(PyObject*, PyObject* key, PyObject* value);
double PyFloat_AsDouble(PyObject*);
PyObject* PyFloat_FromDouble(double);
PyObject* PyIter_Next(PyObject*);
int PyList_Append(PyObject*, PyObject*);
PyObject* PyList_GetItem(PyObject*, Py_ssize_t);  // borrowed
PyObject* PyList_New(Py_ssize_t);
int PyList_SetItem(PyObject*, Py_ssize_t, PyObject*);  // takes the reference
int PyList_SetSlice(PyObject*, Py_ssize_t, Py_ssize_t, PyObject*);
Py_ssize_t PyList_Size(PyObject*);
long long PyLong_AsLongLong(PyObject*);
unsigned long long PyLong_AsUnsignedLongLong(PyObject*);
PyObject* PyLong_FromLong(long);
PyObject* PyLong_FromLongLong(long long);
PyObject* PyLong_FromUnsignedLongLong(unsigned long long);
PyObject* PyNumber_Index(PyObject*);
int PySet_Contains(PyObject*, PyObject* key);
Py_ssize_t PySet_Size(PyObject*);
Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t step);
int PySlice_Unpack(PyObject*, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step);
PyObject* PyTuple_GetItem(PyObject*, Py_ssize_t);  // borrowed
PyObject* PyTuple_New(Py_ssize_t);
PyObject* PyTuple_Pack(Py_ssize_t, ...);
int PyTuple_SetItem(PyObject*, Py_ssize_t, PyObject*);  // takes the reference
Py_ssize_t PyTuple_Size(PyObject*);
PyObject* PyType_FromSpec(PyType_Spec*);
PyObject* PyType_GenericAlloc(PyObject* type, Py_ssize_t items);
void* PyType_GetSlot(PyObject* type, int slot);
const char* PyUnicode_AsUTF8AndSize(PyObject*, Py_ssize_t* bytes);
PyObject* PyUnicode_InternFromString(const char*);
PyObject* PyWeakref_NewRef(PyObject*, PyObject* callback);
