/* The Python interpreter, asked whether a signal has come that it expects to handle.
 *
 * Python runs the handlers of signals (Ctrl-C is one) in its main thread, between two of its own
 * instructions. While that thread runs a kernel or waits for one, nothing of Python runs, so the
 * runtime has to ask. If a handler raises, its exception is kept here until the launch has returned to
 * Python, which raises it.
 */
#include <pthread.h>

#include "runtime.h"

typedef struct python {
    int (*acquire)(void); /* PyGILState_Ensure */
    int (*check)(void);   /* PyErr_CheckSignals */
    void (*fetch)(void **type, void **value, void **trace); /* PyErr_Fetch */
    void (*release)(int); /* PyGILState_Release */
    pthread_t main;       /* the thread that runs handlers of signals */
} python;

static python interpreter;
static struct { void *type, *value, *trace; } raised;

/* The addresses of Python's functions, and the identity of its main thread. */
MTL_EXPORT void mtl_host_set(uint64_t acquire, uint64_t check, uint64_t fetch, uint64_t release,
                             uint64_t main_thread) {
    interpreter.acquire = (int (*)(void))(uintptr_t)acquire;
    interpreter.fetch = (void (*)(void **, void **, void **))(uintptr_t)fetch;
    interpreter.release = (void (*)(int))(uintptr_t)release;
    interpreter.main = (pthread_t)(uintptr_t)main_thread;
    interpreter.check = (int (*)(void))(uintptr_t)check;
}

/* Whether this is the thread that runs Python's signal handlers. */
bool mtl_host_is_here(void) {
    return interpreter.check && pthread_equal(pthread_self(), interpreter.main);
}

/* Lets Python run the handlers of signals that have come. Whether one raised. To be called in the
 * main thread, without the interpreter's lock and without locks of the runtime. */
bool mtl_host_poll(void) {
    if (raised.type) return true; /* one exception at a time; Python keeps the signal for later */
    int state = interpreter.acquire();
    bool has_raised = interpreter.check() != 0;
    if (has_raised) interpreter.fetch(&raised.type, &raised.value, &raised.trace);
    interpreter.release(state);
    return has_raised;
}

/* Whether this thread has to raise an exception when it returns to Python. */
bool mtl_host_raised(void) { return raised.type && mtl_host_is_here(); }

/* Hands the exception to Python: type, value and traceback, as PyErr_Restore takes them. */
MTL_EXPORT void mtl_host_take(void **exception) {
    exception[0] = raised.type;
    exception[1] = raised.value;
    exception[2] = raised.trace;
    raised.type = raised.value = raised.trace = NULL;
}
