/* Sleeping until a 32-bit word changes, the one primitive that the pool needs of the system. */
#ifndef METALLOID_CPU_PARK_H
#define METALLOID_CPU_PARK_H

#include <stdatomic.h>
#include <stdint.h>

/* Returns when woken, or when *word is no longer `seen`, or after timeout_ns (0 = no limit), or
 * for no reason: callers look again. */
static inline void mtl_park(_Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns);

/* Wakes up to `count` threads that sleep on the word. */
static inline void mtl_unpark(_Atomic uint32_t *word, uint32_t count);

#if defined(__linux__)

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline void mtl_park(_Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns) {
    struct timespec limit = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, timeout_ns ? &limit : NULL, NULL, 0);
}

static inline void mtl_unpark(_Atomic uint32_t *word, uint32_t count) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count < INT_MAX ? count : INT_MAX, NULL, NULL, 0);
}

#elif defined(__APPLE__)

/* The calls under libc++'s atomic wait, present in every macOS since 10.12. */
extern int __ulock_wait(uint32_t operation, void *address, uint64_t value, uint32_t timeout_us);
extern int __ulock_wake(uint32_t operation, void *address, uint64_t unused);
enum { MTL_COMPARE_AND_WAIT = 1, MTL_WAKE_ALL = 0x100 };

static inline void mtl_park(_Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns) {
    uint64_t timeout_us = (timeout_ns + 999) / 1000;
    if (timeout_us > UINT32_MAX) timeout_us = UINT32_MAX;
    __ulock_wait(MTL_COMPARE_AND_WAIT, (void *)word, seen, (uint32_t)timeout_us);
}

static inline void mtl_unpark(_Atomic uint32_t *word, uint32_t count) {
    uint32_t everyone = count > 1 ? MTL_WAKE_ALL : 0; /* waking too many is harmless */
    __ulock_wake(MTL_COMPARE_AND_WAIT | everyone, (void *)word, 0);
}

#else
#error "no way to sleep on this system"
#endif

/* Tells the processor that this is a waiting loop. */
static inline void mtl_relax(void) {
#if defined(__x86_64__)
    __asm__ volatile("pause");
#else
    __asm__ volatile("isb"); /* yield does nothing on most arm64 cores */
#endif
}

#endif
