// Records of failed accesses, in kernels whose accesses are checked (runtime/launch/recorded_faults.py).
#pragma once

#include "kernel_entry.h"

namespace metalloid {

// The first access of a launch that was outside of its object.
struct fault_record {
  uint failed, others, site, unused;
  uint group[3], position[3];
  long offset;
  ulong extent;
};

// Record an access that was outside. The last word of the launch points to the record, and
// `put_position` stores the positions of the threadgroup and of the thread.
template <class Put>
METALLOID_INLINE void record_fault(void* word, uint site, long offset, ulong extent, Put put_position) {
  auto record = (device fault_record*)word;
  if (__atomic_exchange_n(&record->failed, 1u, __ATOMIC_RELAXED)) {
    __atomic_fetch_add(&record->others, 1u, __ATOMIC_RELAXED);
    return;
  }
  record->site = site;
  record->offset = offset;
  record->extent = extent;
  put_position(record->group, record->position);
}

}  // namespace metalloid
