// Outcomes of queued launches.
#include "runtime.h"
#include "values.h"

// The items of the functions of the runtime (fast_launch.py).
struct functions {
  int (*done)(uint64_t ticket);
  int (*wait)(uint64_t ticket, double seconds, mtl_outcome* outcome);
};

enum { ENDED = 1 };  // what mtl_wait returns

// outcome_of(ticket): the seconds of a launch that has ended, its outcome if it failed, None otherwise.
static PyObject* outcome_of(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  (void)count;
  const struct functions* functions = (const void*)PyBytes_AsString(self);
  uint64_t ticket;
  mtl_outcome outcome;
  if (!as_word(given[0], &ticket)) return 0;
  if (!functions->done(ticket) || functions->wait(ticket, 0, &outcome) != ENDED) {
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
  }
  if (outcome.status) return PyBytes_FromStringAndSize((const char*)&outcome, sizeof outcome);
  return PyFloat_FromDouble(outcome.seconds);
}

static PyMethodDef definition = {"outcome_of", outcome_of, METH_FASTCALL, 0};

MTL_EXPORT PyObject* mtl_queued_outcome(PyObject* functions) {
  return PyCFunction_NewEx(&definition, functions, 0);
}
