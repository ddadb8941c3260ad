// The memory of report_block.h.
#pragma once

#include "metal_types.h"

namespace metalloid {
namespace report {

// The numbers are read by name in printf_buffer.py; messages as by runtime/messages.py.
struct report_block {
  uint used, dropped, failed, line;
  uint group[3], position[3];
  char condition[256], file[256];
  char messages[1 << 20];
};

}  // namespace report
}  // namespace metalloid
