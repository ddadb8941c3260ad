// Calls of a compiled function whose arguments are like those of an earlier call: arrays of the same
// types and layouts, and numbers. Other calls, and their errors, are left to Python.
#include "plan_run.h"

#include <stdlib.h>

// The items of a program (`Program.native`).
enum {
  CALL_PLAN, CALL_CHECKS, CALL_LEAVES, CALL_CONSTANTS, CALL_OUTPUTS, CALL_SETTINGS, CALL_VERSION,
  CALL_IS_TUPLE, CALL_IDS, CALL_KIND, CALL_NO_ARGS, CALL_NUMBERS
};
enum { CHECK_DTYPE, CHECK_SHAPE, CHECK_STRIDES, CHECK_DEVICE };  // of an array; a number has its type
enum { OUTPUT_OWNER, OUTPUT_DTYPE, OUTPUT_SHAPE, OUTPUT_DATA };
enum { MAX_ARGUMENTS = MAX_ADDRESSES, ALIGNMENT = 64, TP_CALL_OFFSET = 128 };

struct check {
  PyObject *number_type;  // or null, of an array
  PyObject *dtype, *shape, *strides, *device;
};

struct output {
  long long owner;  // the index of its memory among those of leaves and results
  struct leaf leaf;
};

struct program {
  PyObject* items;  // a tuple, which holds the objects below
  struct plan* plan;
  PyObject *settings, *version, *constants, *kind;  // settings: the dictionary of its attributes
  const int64_t* leaves;   // indices of arguments, or -1 - those of constants
  const int64_t* numbers;  // by input of the plan, that of the call; -1 for constants of the program
  uint64_t input_count;    // 0 if Python has to compute the numbers
  bool is_tuple;
  Py_ssize_t check_count, output_count;
  struct check checks[MAX_ARGUMENTS];
  struct output outputs[];
};

// Those of a call, in order.
struct numbers {
  const struct program* program;
  PyObject* values[MAX_ARGUMENTS];
  Py_ssize_t count;
};

static const char PROGRAM[] = "metalloid.program";
static PyObject *version_, *call_, *function_type;

static bool is_like(PyObject* node, const struct check* check) {
  return get(node, NODE, NODE_DTYPE) == check->dtype && get(node, NODE, NODE_DEVICE) == check->device &&
         is_equal(get(node, NODE, NODE_SHAPE), check->shape) &&
         is_equal(PyTuple_GetItem(get(node, NODE, NODE_DATA), 0), check->strides);
}

// The nodes and numbers of the arguments, in order; borrowed. False for arguments of other kinds.
static bool match(const struct program* program, PyObject* args, PyObject** nodes,
                  struct numbers* numbers) {
  if (PyTuple_Size(args) != program->check_count) return false;
  Py_ssize_t node_count = 0;
  numbers->count = 0;
  for (Py_ssize_t i = 0; i < program->check_count; i++) {
    PyObject *value = PyTuple_GetItem(args, i), *type = type_of(value);
    const struct check* check = &program->checks[i];
    if (type == mtl_layouts[ARRAY].type) {
      PyObject* node = check->number_type ? 0 : get(value, ARRAY, ARRAY_NODE);
      if (!node || get(node, NODE, NODE_KIND) != program->kind || !is_like(node, check)) return false;
      nodes[node_count++] = node;
    } else {
      if (type != check->number_type) return false;
      numbers->values[numbers->count++] = value;
    }
  }
  return true;
}

static PyObject* new_array(const struct output* output, PyObject* const* owners) {
  return mtl_new_array(mtl_new_leaf(&output->leaf, owners[output->owner]));
}

static PyObject* results_of(const struct program* program, PyObject* const* owners) {
  if (!program->is_tuple) return new_array(&program->outputs[0], owners);
  PyObject* results = PyTuple_New(program->output_count);
  for (Py_ssize_t i = 0; results && i < program->output_count; i++) {
    PyObject* array = new_array(&program->outputs[i], owners);
    if (array) {
      PyTuple_SetItem(results, i, array);
    } else {
      Py_DecRef(results);
      results = 0;
    }
  }
  return results;
}

// The addresses of the leaves, and their memory.
static bool bind_leaves(const struct program* program, PyObject* const* nodes, uint64_t* addresses,
                        PyObject** owners) {
  const uint64_t count = program->plan->head->leaves;
  for (uint64_t i = 0; i < count; i++) {
    const int64_t leaf = program->leaves[i];
    PyObject* node = leaf < 0 ? PyTuple_GetItem(program->constants, -1 - leaf) : nodes[leaf];
    if (!mtl_memory_address(program->plan, node, program->kind, &addresses[i])) return false;
    if (addresses[i] % ALIGNMENT || PyLong_AsLongLong(PyTuple_GetItem(get(node, NODE, NODE_DATA), 1)))
      return false;
    owners[i] = new_reference(get(node, NODE, NODE_MEMORY));
  }
  return true;
}

static PyObject* tuple_of(PyObject* const* objects, Py_ssize_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple && i < count; i++) PyTuple_SetItem(tuple, i, new_reference(objects[i]));
  return tuple;
}

// False if Python has to; with an error if a number does not fit.
static bool write_numbers(PyObject* frame, const struct numbers* given) {
  size_t count;
  const struct program* program = given->program;
  const struct number* numbers = program->input_count ? mtl_numbers_of(frame, &count) : 0;
  for (size_t i = 0; numbers && i < count; i++) {
    const int64_t index = program->numbers[numbers[i].index];
    if (index >= 0 && !mtl_write_number(&numbers[i], given->values[index])) return false;
  }
  return numbers;
}

static bool pack(struct plan* plan, PyObject* frame, void* context) {
  const struct numbers* given = context;
  if (write_numbers(frame, given)) return true;
  PyErr_Clear();  // of an integer that does not fit: Python's error tells more
  PyObject* tuple = tuple_of(given->values, given->count);
  const bool is_packed = tuple && mtl_pack_by_python(plan, frame, tuple);
  drop(tuple);
  return is_packed;
}

// From the tuple of arguments to the array or the tuple of arrays; None for other calls.
static PyObject* program_call(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)count;
  const struct program* program = PyCapsule_GetPointer(self, PROGRAM);
  PyObject *nodes[MAX_ARGUMENTS], *owners[MAX_ADDRESSES], *results = 0;
  uint64_t addresses[MAX_ADDRESSES];
  struct numbers numbers;
  numbers.program = program;
  const struct plan_head* head = program->plan->head;
  if (PyDict_GetItemWithError(program->settings, version_) != program->version ||
      !match(program, args[0], nodes, &numbers))
    return none_unless_raised();
  for (uint64_t i = 0; i < head->leaves; i++) owners[i] = 0;
  if (bind_leaves(program, nodes, addresses, owners) &&
      mtl_run_plan(program->plan, addresses, numbers.count ? pack : 0, &numbers, &owners[head->leaves],
                   0)) {
    results = results_of(program, owners);
    for (uint64_t i = 0; i < head->results; i++) Py_DecRef(owners[head->leaves + i]);
  }
  for (uint64_t i = 0; i < head->leaves; i++) drop(owners[i]);
  return results ? results : none_unless_raised();
}

// ---- programs

static void delete(PyObject* capsule) {
  struct program* program = PyCapsule_GetPointer(capsule, PROGRAM);
  Py_DecRef(program->items);
  free(program);
}

static void fill(struct program* program, PyObject* checks, PyObject* outputs) {
  PyObject* items = program->items;
  for (Py_ssize_t i = 0; i < program->check_count; i++) {
    PyObject* check = PyTuple_GetItem(checks, i);
    program->checks[i] = type_of(check) == type_of(checks)
                             ? (struct check){0,
                                              PyTuple_GetItem(check, CHECK_DTYPE),
                                              PyTuple_GetItem(check, CHECK_SHAPE),
                                              PyTuple_GetItem(check, CHECK_STRIDES),
                                              PyTuple_GetItem(check, CHECK_DEVICE)}
                             : (struct check){.number_type = check};
  }
  for (Py_ssize_t i = 0; i < program->output_count; i++) {
    PyObject* output = PyTuple_GetItem(outputs, i);
    program->outputs[i] = (struct output){
        .owner = PyLong_AsLongLong(PyTuple_GetItem(output, OUTPUT_OWNER)),
        .leaf = {
            .kind = program->kind,
            .no_args = PyTuple_GetItem(items, CALL_NO_ARGS),
            .ids = PyTuple_GetItem(items, CALL_IDS),
            .dtype = PyTuple_GetItem(output, OUTPUT_DTYPE),
            .shape = PyTuple_GetItem(output, OUTPUT_SHAPE),
            .data = PyTuple_GetItem(output, OUTPUT_DATA),
        },
    };
  }
}

static PyMethodDef definition = {"program_call", program_call, METH_FASTCALL, 0};

// From the items of a program.
MTL_EXPORT PyObject* mtl_program_call(PyObject* items) {
  if (!version_) version_ = PyUnicode_InternFromString("_version");
  PyObject *checks = PyTuple_GetItem(items, CALL_CHECKS), *outputs = PyTuple_GetItem(items, CALL_OUTPUTS);
  const size_t output_bytes = (size_t)PyTuple_Size(outputs) * sizeof(struct output);
  struct program* program = malloc(sizeof *program + output_bytes);
  PyObject* capsule = program ? PyCapsule_New(program, PROGRAM, delete) : 0;
  if (!capsule) {
    free(program);
    return none_unless_raised();
  }
  *program = (struct program){
      .items = new_reference(items),
      .plan = mtl_plan_of(PyTuple_GetItem(items, CALL_PLAN)),
      .settings = PyTuple_GetItem(items, CALL_SETTINGS),
      .version = PyTuple_GetItem(items, CALL_VERSION),
      .constants = PyTuple_GetItem(items, CALL_CONSTANTS),
      .kind = PyTuple_GetItem(items, CALL_KIND),
      .leaves = (const int64_t*)PyBytes_AsString(PyTuple_GetItem(items, CALL_LEAVES)),
      .numbers = (const int64_t*)PyBytes_AsString(PyTuple_GetItem(items, CALL_NUMBERS)),
      .input_count = (uint64_t)PyBytes_Size(PyTuple_GetItem(items, CALL_NUMBERS)) / sizeof(int64_t),
      .is_tuple = PyTuple_GetItem(items, CALL_IS_TUPLE) == &_Py_TrueStruct,
      .check_count = PyTuple_Size(checks),
      .output_count = PyTuple_Size(outputs),
  };
  fill(program, checks, outputs);
  PyObject* function = PyCFunction_NewEx(&definition, capsule, 0);
  Py_DecRef(capsule);
  if (function && !function_type) function_type = type_of(function);
  return function;
}

// ---- CompiledFunction.__call__

static uint64_t calls_offset;

static bool is_program(PyObject* function) {
  return type_of(function) == function_type &&
         PyCFunction_GetFunction(function) == (void*)program_call;
}

// The result of the first function that knows the arguments; None if none does.
static PyObject* call_known(PyObject* calls, PyObject* args) {
  PyObject* result = new_reference(&_Py_NoneStruct);
  for (Py_ssize_t i = 0; i < PyTuple_Size(calls) && result == &_Py_NoneStruct; i++) {
    PyObject* function = PyTuple_GetItem(calls, i);
    Py_DecRef(result);
    result = is_program(function) ? program_call(PyCFunction_GetSelf(function), &args, 1)
                                  : PyObject_CallFunctionObjArgs(function, args, (void*)0);
  }
  return result;
}

static PyObject* call_compiled(PyObject* self, PyObject* args, PyObject* keywords) {
  PyObject* calls = *(PyObject**)((char*)self + calls_offset);
  const bool has_keywords = keywords && PyDict_Size(keywords);
  if (calls && !has_keywords) {
    Py_IncRef(calls);  // another thread may replace it
    PyObject* result = call_known(calls, args);
    Py_DecRef(calls);
    if (result != &_Py_NoneStruct) return result;
    Py_DecRef(result);
  }
  PyObject* names = keywords ? new_reference(keywords) : PyDict_New();
  PyObject *method = names ? PyObject_GetAttr(self, call_) : 0, *result = 0;
  if (method) result = PyObject_CallFunctionObjArgs(method, args, names, (void*)0);
  drop(method), drop(names);
  return result;
}

// Calls of compiled functions look for a program without Python's `__call__`. The interpreter has no
// function to replace a slot: it stays as it is where the type is laid out differently. Takes the offset
// of the slot of `_calls`.
MTL_EXPORT void mtl_define_calls(PyObject* type, uint64_t offset) {
  void** slot = (void**)((char*)type + TP_CALL_OFFSET);
  if (*slot != PyType_GetSlot(type, Py_tp_call)) return;
  call_ = PyUnicode_InternFromString("_call");
  calls_offset = offset;
  *slot = (void*)call_compiled;
}
