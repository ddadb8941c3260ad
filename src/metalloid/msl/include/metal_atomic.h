// Atomic functions (MSL specification, "Atomic Functions").
//
// The memory order of an operation must be memory_order_relaxed in MSL; stronger orders exist for
// fences only. An operation on a pointer into a named address space is an overload of its own, so
// that the space reaches the atomic instruction.
#pragma once

#include "metal_compute.h"
#include "metal_convert.h"

namespace metal {

template <class T>
struct atomic {
  T value;
};

// The names of the types: Apple's library says _atomic<T> where it means a template argument.
template <class T>
using _atomic = atomic<T>;
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<long> atomic_long;
typedef atomic<ulong> atomic_ulong;
typedef atomic<float> atomic_float;

// clang's loads, stores and exchanges take integers only, so that a float goes by its bits.
#define METALLOID_ATOMIC_ACCESS(space) \
  template <class T> \
  METALLOID_INLINE T atomic_load_explicit(const volatile space atomic<T>* object, memory_order) { \
    using bits = metalloid::bits_type<T>; \
    return as_type<T>( \
        __atomic_load_n((const volatile space bits*)&object->value, __ATOMIC_RELAXED)); \
  } \
  template <class T> \
  METALLOID_INLINE void atomic_store_explicit(volatile space atomic<T>* object, \
                                              metalloid::no_deduction<T> desired, memory_order) { \
    using bits = metalloid::bits_type<T>; \
    __atomic_store_n((volatile space bits*)&object->value, as_type<bits>(desired), \
                     __ATOMIC_RELAXED); \
  } \
  template <class T> \
  METALLOID_INLINE T atomic_exchange_explicit(volatile space atomic<T>* object, \
                                              metalloid::no_deduction<T> desired, memory_order) { \
    using bits = metalloid::bits_type<T>; \
    return as_type<T>(__atomic_exchange_n((volatile space bits*)&object->value, \
                                          as_type<bits>(desired), __ATOMIC_RELAXED)); \
  } \
  template <class T> \
  METALLOID_INLINE bool atomic_compare_exchange_weak_explicit( \
      volatile space atomic<T>* object, thread T* expected, metalloid::no_deduction<T> desired, \
      memory_order, memory_order) { \
    using bits = metalloid::bits_type<T>; \
    bits previous = as_type<bits>(*expected); \
    bool exchanged = __atomic_compare_exchange_n((volatile space bits*)&object->value, &previous, \
                                                 as_type<bits>(desired), false, \
                                                 __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    *expected = as_type<T>(previous); \
    return exchanged; \
  }

// Read, modify and write; returns the value before.
#define METALLOID_ATOMIC_MODIFY(space, operation) \
  template <class T> \
  METALLOID_INLINE T atomic_fetch_##operation##_explicit( \
      volatile space atomic<T>* object, metalloid::no_deduction<T> operand, memory_order) { \
    return __atomic_fetch_##operation(&object->value, operand, __ATOMIC_RELAXED); \
  }

// The functions for 64-bit integers, which return nothing.
#define METALLOID_ATOMIC_UPDATE(space, operation) \
  template <class T> \
  METALLOID_INLINE void atomic_##operation##_explicit( \
      volatile space atomic<T>* object, metalloid::no_deduction<T> operand, memory_order) { \
    __atomic_fetch_##operation(&object->value, operand, __ATOMIC_RELAXED); \
  }

#define METALLOID_ATOMICS_IN(space) \
  METALLOID_ATOMIC_ACCESS(space) \
  METALLOID_ATOMIC_MODIFY(space, add) \
  METALLOID_ATOMIC_MODIFY(space, sub) \
  METALLOID_ATOMIC_MODIFY(space, min) \
  METALLOID_ATOMIC_MODIFY(space, max) \
  METALLOID_ATOMIC_MODIFY(space, and) \
  METALLOID_ATOMIC_MODIFY(space, or) \
  METALLOID_ATOMIC_MODIFY(space, xor) \
  METALLOID_ATOMIC_UPDATE(space, min) \
  METALLOID_ATOMIC_UPDATE(space, max)

METALLOID_ATOMICS_IN(device)
METALLOID_ATOMICS_IN(threadgroup)
// Elements of an array<atomic_uint, 4> are known without their space.
METALLOID_ATOMICS_IN()

#undef METALLOID_ATOMICS_IN
#undef METALLOID_ATOMIC_ACCESS
#undef METALLOID_ATOMIC_MODIFY
#undef METALLOID_ATOMIC_UPDATE

// Orders the memory operations of the calling thread. The switch disappears: the order is a
// constant wherever this is called.
METALLOID_INLINE void atomic_thread_fence(mem_flags, memory_order order,
                                          thread_scope = thread_scope_device) {
  switch (order) {
    case memory_order_relaxed:
      break;
    case memory_order_acquire:
      __atomic_thread_fence(__ATOMIC_ACQUIRE);
      break;
    case memory_order_release:
      __atomic_thread_fence(__ATOMIC_RELEASE);
      break;
    case memory_order_acq_rel:
      __atomic_thread_fence(__ATOMIC_ACQ_REL);
      break;
    case memory_order_seq_cst:
      __atomic_thread_fence(__ATOMIC_SEQ_CST);
      break;
  }
}

}  // namespace metal
