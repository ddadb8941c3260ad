// Messages and failed assertions of kernels on devices with memory of their own: written to a block
// of memory that the host reads when a launch has ended (runtime/launch/printf_buffer.py).
//
// A target defines in metalloid::report, before it includes this file: report_memory(), the address of
// the block or null; put_position(group, position), which writes where the thread is; and end_thread().
// METALLOID_ASSERTION_FUNCTION begins the declaration of the function that calls the last.
#pragma once

#include "report_types.h"

namespace metalloid {
namespace report {

struct report_message {
  uint bytes, type;
  ulong entry;
  uint group[3], position[3];
  uint count, unused;
};

// As log_value in metal_logging.h.
struct report_value {
  uchar kind, lanes;
  ulong bits;
};

METALLOID_INLINE uint text_bytes(constant char* text) {
  uint bytes = 1;
  while (text && text[bytes - 1] && bytes < 4096) ++bytes;
  return bytes;
}
METALLOID_INLINE device char* put(device char* to, constant char* text, uint bytes) {
  for (uint k = 0; k + 1 < bytes; ++k) to[k] = text[k];
  to[bytes - 1] = 0;
  return to + bytes;
}
}  // namespace report
}  // namespace metalloid

extern "C" inline void __msl_log(uint type, constant char* subsystem, constant char* category,
                                 constant char* format, thread const void* values, uint count) {
  using namespace metalloid::report;
  device report_block* block = report_memory();
  thread const report_value* value = (thread const report_value*)values;
  const uint of[] = {text_bytes(subsystem), text_bytes(category), text_bytes(format)};
  uint bytes = sizeof(report_message) + 16 * count + of[0] + of[1] + of[2];
  for (uint k = 0; k < count; ++k)
    if (value[k].kind == 's') bytes += text_bytes((constant char*)value[k].bits);
  const uint padded_bytes = (bytes + 7) & ~7u;
  const uint start = __atomic_fetch_add(&block->used, padded_bytes, __ATOMIC_RELAXED);
  if (start + padded_bytes > sizeof block->messages) {
    __atomic_fetch_sub(&block->used, padded_bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&block->dropped, 1, __ATOMIC_RELAXED);
    return;
  }
  device report_message* message = (device report_message*)(block->messages + start);
  message->bytes = padded_bytes;
  message->type = type;
  message->entry = 0;
  message->count = count;
  put_position(message->group, message->position);
  device ulong* to = (device ulong*)(message + 1);
  for (uint k = 0; k < count; ++k) {
    to[2 * k] = value[k].kind | ulong(value[k].lanes) << 8;
    to[2 * k + 1] = value[k].bits;
  }
  device char* text = put((device char*)(to + 2 * count), subsystem, of[0]);
  text = put(text, category, of[1]);
  text = put(text, format, of[2]);
  for (uint k = 0; k < count; ++k) {
    constant char* given = (constant char*)value[k].bits;
    if (value[k].kind == 's') text = put(text, given, text_bytes(given));
  }
}

// The first that fails says so; the thread ends, and the others go on without it.
METALLOID_ASSERTION_FUNCTION void __msl_assertion_failed(constant char* condition, constant char* file,
                                              uint line) {
  using namespace metalloid::report;
  device report_block* block = report_memory();
  if (__atomic_exchange_n(&block->failed, 1u, __ATOMIC_RELAXED) == 0) {
    block->line = line;
    put_position(block->group, block->position);
    const uint condition_bytes = text_bytes(condition), file_bytes = text_bytes(file);
    put(block->condition, condition, condition_bytes < 256 ? condition_bytes : 256);
    put(block->file, file, file_bytes < 256 ? file_bytes : 256);
  }
  end_thread();
  __builtin_unreachable();
}
