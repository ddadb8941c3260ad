// Atomic functions (MSL specification, "Atomic Functions").
//
// The memory order of an operation must be memory_order_relaxed in MSL; stronger orders exist for
// fences only. An operation on a pointer into a named address space is an overload of its own, so
// that the space reaches the atomic instruction.
#pragma once

#include "metal_compute.h"
#include "metal_convert.h"

namespace metalloid {

#if defined(__SPIRV__)
constexpr bool has_byte_atomics = false;
#else
constexpr bool has_byte_atomics = true;
#endif

// Exchanges and compares a byte as part of its word; `Word` is a pointer into any space.
template <class Word>
METALLOID_INLINE bool compare_exchange_byte(Word word, uint shift, thread uchar* expected,
                                            uchar desired) {
  uint before = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (uchar(before >> shift) == *expected) {
    const uint after = (before & ~(0xffu << shift)) | uint(desired) << shift;
    if (__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
      return true;
  }
  *expected = uchar(before >> shift);
  return false;
}
template <class Word>
METALLOID_INLINE uchar exchange_byte(Word word, uint shift, uchar desired) {
  uchar before = uchar(__atomic_load_n(word, __ATOMIC_RELAXED) >> shift);
  while (!compare_exchange_byte(word, shift, &before, desired)) {
  }
  return before;
}

}  // namespace metalloid

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
    if constexpr (sizeof(T) == 1 && !metalloid::has_byte_atomics) \
      return as_type<T>(metalloid::exchange_byte((volatile space uint*)((ulong)object & ~3ul), \
                                                 ((ulong)object & 3) * 8, \
                                                 as_type<uchar>(desired))); \
    else return as_type<T>(__atomic_exchange_n((volatile space bits*)&object->value, \
                                          as_type<bits>(desired), __ATOMIC_RELAXED)); \
  } \
  template <class T> \
  METALLOID_INLINE bool atomic_compare_exchange_weak_explicit( \
      volatile space atomic<T>* object, thread T* expected, metalloid::no_deduction<T> desired, \
      memory_order, memory_order) { \
    using bits = metalloid::bits_type<T>; \
    bits previous = as_type<bits>(*expected); \
    bool exchanged; \
    if constexpr (sizeof(T) == 1 && !metalloid::has_byte_atomics) \
      exchanged = metalloid::compare_exchange_byte( \
          (volatile space uint*)((ulong)object & ~3ul), ((ulong)object & 3) * 8, &previous, \
          as_type<uchar>(desired)); \
    else exchanged = __atomic_compare_exchange_n((volatile space bits*)&object->value, &previous, \
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

// SPIR-V adds floats by an extension only: here they are exchanged by their bits.
#if defined(__SPIRV__)
#define METALLOID_ATOMIC_ADD(space) \
  template <class T> \
  METALLOID_INLINE T atomic_fetch_add_explicit( \
      volatile space atomic<T>* object, metalloid::no_deduction<T> operand, memory_order order) { \
    if constexpr (metalloid::is_float<T>) { \
      T before = atomic_load_explicit(object, order); \
      while (!atomic_compare_exchange_weak_explicit(object, &before, T(before + operand), order, \
                                                    order)) { \
      } \
      return before; \
    } else { \
      return __atomic_fetch_add(&object->value, operand, __ATOMIC_RELAXED); \
    } \
  }
#define METALLOID_ATOMIC_SUBTRACT(space) \
  template <class T> \
  METALLOID_INLINE T atomic_fetch_sub_explicit( \
      volatile space atomic<T>* object, metalloid::no_deduction<T> operand, memory_order order) { \
    return atomic_fetch_add_explicit(object, T(-operand), order); \
  }
#else
#define METALLOID_ATOMIC_ADD(space) METALLOID_ATOMIC_MODIFY(space, add)
#define METALLOID_ATOMIC_SUBTRACT(space) METALLOID_ATOMIC_MODIFY(space, sub)
#endif

// The functions for 64-bit integers, which return nothing.
#define METALLOID_ATOMIC_UPDATE(space, operation) \
  template <class T> \
  METALLOID_INLINE void atomic_##operation##_explicit( \
      volatile space atomic<T>* object, metalloid::no_deduction<T> operand, memory_order) { \
    __atomic_fetch_##operation(&object->value, operand, __ATOMIC_RELAXED); \
  }

#define METALLOID_ATOMICS_IN(space) \
  METALLOID_ATOMIC_ACCESS(space) \
  METALLOID_ATOMIC_ADD(space) \
  METALLOID_ATOMIC_SUBTRACT(space) \
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
#undef METALLOID_ATOMIC_ADD
#undef METALLOID_ATOMIC_SUBTRACT
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
