/* What kernels say to the host: messages, and assertions that do not hold.
 *
 * Messages of all launches gather in one buffer until Python fetches them. When it is full, the
 * later ones are counted and dropped: a kernel that logs must end all the same.
 */
#include <string.h>

#include "fibre.h"

enum { CAPACITY = 1 << 20, LONGEST_TEXT = 4096 };

/* As in metal_logging.h. */
typedef struct log_value {
    uint8_t kind, lanes;
    union {
        uint64_t bits;
        const char *text;
    };
} log_value;

/* One message; `count` values and the texts follow it: subsystem, category, format, and those of
 * values of kind 's', each with its terminating zero. */
typedef struct message {
    uint32_t bytes; /* with all that follows */
    uint32_t type;
    uint64_t entry;
    uint32_t threadgroup[3], thread[3];
    uint32_t count, unused;
} message;

_Static_assert(sizeof(message) == 48 && sizeof(log_value) == 16, "Python unpacks them");

static struct {
    pthread_mutex_t lock;
    size_t used;
    uint32_t dropped;
    char bytes[CAPACITY];
} gathered = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct position {
    uint32_t axes[3];
} position;

static position running_thread(const mtl_context *context) {
    const uint32_t *own = context->running ? context->running->position : context->range.thread;
    return (position){{own[0], own[1], own[2]}};
}

/* Of a thread that is known by its index in the threadgroup. */
static position thread_at(const mtl_context *context, uint32_t index) {
    const uint32_t *size = context->range.size;
    return (position){
        {index % size[0], index / size[0] % size[1], index / size[0] / size[1]},
    };
}

static size_t text_bytes(const char *text) { return text ? strnlen(text, LONGEST_TEXT) + 1 : 1; }

static char *put(char *to, const char *text) {
    size_t length = text_bytes(text) - 1;
    memcpy(to, text ? text : "", length);
    to[length] = 0;
    return to + length + 1;
}

static void log_from(position thread, uint32_t type, const char *subsystem, const char *category,
                     const char *format, const log_value *values, uint32_t count) {
    mtl_context *context = mtl_current;
    /* Texts are measured before the lock is taken: a wild pointer ends the kernel here. */
    size_t bytes = sizeof(message) + count * sizeof *values;
    bytes += text_bytes(subsystem) + text_bytes(category) + text_bytes(format);
    for (uint32_t i = 0; i < count; i++) {
        if (values[i].kind == 's') bytes += text_bytes(values[i].text);
    }
    bytes = (bytes + 7) & ~(size_t)7;
    context->holds_lock = true;
    pthread_mutex_lock(&gathered.lock);
    if (gathered.used + bytes > CAPACITY) {
        gathered.dropped++;
    } else {
        message head = {
            .bytes = (uint32_t)bytes,
            .type = type,
            .entry = (uintptr_t)context->job->entry,
            .count = count,
        };
        memcpy(head.threadgroup, context->range.threadgroup, sizeof head.threadgroup);
        memcpy(head.thread, thread.axes, sizeof head.thread);
        char *to = gathered.bytes + gathered.used;
        memcpy(to, &head, sizeof head);
        memcpy(to + sizeof head, values, count * sizeof *values);
        to = put(to + sizeof head + count * sizeof *values, subsystem);
        to = put(put(to, category), format);
        for (uint32_t i = 0; i < count; i++) {
            if (values[i].kind == 's') to = put(to, values[i].text);
        }
        gathered.used += bytes;
    }
    pthread_mutex_unlock(&gathered.lock);
    mtl_release_lock(context);
}

MTL_EXPORT void __msl_log(uint32_t type, const char *subsystem, const char *category,
                          const char *format, const log_value *values, uint32_t count) {
    log_from(running_thread(mtl_current), type, subsystem, category, format, values, count);
}

/* Moves the messages so far to `destination`, which has room for mtl_log_capacity() bytes. Returns
 * their size, and how many were dropped since the last time. */
MTL_EXPORT uint64_t mtl_log_take(void *destination, uint32_t *dropped) {
    pthread_mutex_lock(&gathered.lock);
    size_t used = gathered.used;
    memcpy(destination, gathered.bytes, used);
    *dropped = gathered.dropped;
    gathered.used = gathered.dropped = 0;
    pthread_mutex_unlock(&gathered.lock);
    return used;
}

MTL_EXPORT uint64_t mtl_log_capacity(void) { return CAPACITY; }

/* Whether there is anything to take. */
MTL_EXPORT bool mtl_log_waits(void) {
    pthread_mutex_lock(&gathered.lock);
    bool waits = gathered.used || gathered.dropped;
    pthread_mutex_unlock(&gathered.lock);
    return waits;
}

void mtl_report_after_fork(void) {
    pthread_mutex_init(&gathered.lock, NULL);
    gathered.used = gathered.dropped = 0;
}

/* ---- ends of a kernel, as by a fault: back to the scheduler, never to return ---- */

static _Noreturn void leave(mtl_fault fault) {
    mtl_context *context = mtl_current;
    context->fault = fault;
    context->in_kernel = false;
    void *abandoned;
    mtl_switch(&abandoned, context->scheduler);
    __builtin_unreachable();
}

/* The fault of a thread that is known by its index in the threadgroup. */
static mtl_fault fault_of(int32_t status, uint32_t index) {
    const position thread = thread_at(mtl_current, index);
    mtl_fault fault = {.signal = SIGABRT, .status = status};
    memcpy(fault.thread, thread.axes, sizeof fault.thread);
    return fault;
}

static _Noreturn void assertion_failed(position thread, const char *condition, const char *file,
                                       uint32_t line) {
    mtl_fault fault = {.signal = SIGABRT, .status = MTL_ASSERTION};
    fault.condition = condition;
    fault.file = file;
    fault.line = line;
    memcpy(fault.thread, thread.axes, sizeof fault.thread);
    leave(fault);
}

MTL_EXPORT _Noreturn void __msl_assertion_failed(const char *condition, const char *file,
                                                 uint32_t line) {
    assertion_failed(running_thread(mtl_current), condition, file, line);
}

static _Noreturn void outside(position thread, uint32_t site, int64_t offset, uint64_t extent,
                              uint32_t others, const void *code) {
    mtl_fault fault = {.signal = SIGABRT, .status = MTL_OUTSIDE, .address = (uint64_t)offset};
    fault.code = (uintptr_t)code;
    fault.wrong_value = site;
    fault.arrived = others;
    fault.extent = extent;
    memcpy(fault.thread, thread.axes, sizeof fault.thread);
    leave(fault);
}

/* An access outside of its object (compiler/bounds). */
MTL_EXPORT _Noreturn void __msl_outside(uint32_t site, int64_t offset, uint64_t extent) {
    outside(running_thread(mtl_current), site, offset, extent, 0, MTL_CALL_SITE);
}

/* ---- of vector code, which runs many threads and says which by its index ---- */

MTL_EXPORT void __msl_log_in_thread(uint32_t type, const char *subsystem, const char *category,
                                    const char *format, const log_value *values, uint32_t count,
                                    uint32_t thread) {
    log_from(thread_at(mtl_current, thread), type, subsystem, category, format, values, count);
}

MTL_EXPORT _Noreturn void __msl_assertion_failed_in_thread(const char *condition, const char *file,
                                                           uint32_t line, uint32_t thread) {
    assertion_failed(thread_at(mtl_current, thread), condition, file, line);
}

/* `others`: how many more threads fail that run with this one. */
MTL_EXPORT _Noreturn void __msl_outside_in_thread(uint32_t site, int64_t offset, uint64_t extent,
                                                  uint32_t thread, uint32_t others) {
    outside(thread_at(mtl_current, thread), site, offset, extent, others, MTL_CALL_SITE);
}

/* ---- of vector code, which finds these out by itself ---- */

MTL_EXPORT _Noreturn void __msl_divided_by_zero(void) {
    leave((mtl_fault){.signal = SIGFPE, .code = (uintptr_t)MTL_CALL_SITE});
}

MTL_EXPORT _Noreturn void __msl_lane_out_of_range(uint32_t lane, uint32_t thread) {
    mtl_fault fault = fault_of(MTL_LANE_OUT_OF_RANGE, thread);
    fault.wrong_value = lane;
    fault.code = (uintptr_t)MTL_CALL_SITE;
    leave(fault);
}

MTL_EXPORT _Noreturn void __msl_bad_modulo(uint32_t modulo, uint32_t thread) {
    mtl_fault fault = fault_of(MTL_BAD_MODULO, thread);
    fault.wrong_value = modulo;
    fault.code = (uintptr_t)MTL_CALL_SITE;
    leave(fault);
}

/* `thread` is one that is missing. */
MTL_EXPORT _Noreturn void __msl_barrier_missed(uint32_t arrived, uint32_t expected,
                                               uint32_t thread) {
    mtl_fault fault = fault_of(MTL_BARRIER_MISSED, thread);
    fault.arrived = arrived;
    fault.expected = expected;
    leave(fault);
}

/* `thread` is one that waits elsewhere. */
MTL_EXPORT _Noreturn void __msl_barrier_mismatch(uint32_t thread) {
    leave(fault_of(MTL_BARRIER_MISMATCH, thread));
}
