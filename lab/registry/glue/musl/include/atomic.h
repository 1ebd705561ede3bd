/* The atomic operations that musl's mallocs use, as compiler builtins. */

#ifndef HEAPDROME_MUSL_ATOMIC_H
#define HEAPDROME_MUSL_ATOMIC_H

#include <stdint.h>

static inline int a_cas(volatile int *p, int expected, int desired)
{
    __atomic_compare_exchange_n(p, &expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}

static inline int a_swap(volatile int *p, int value)
{
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);
}

static inline void a_store(volatile int *p, int value)
{
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);
}

static inline void a_or(volatile int *p, int bits)
{
    __atomic_fetch_or(p, bits, __ATOMIC_SEQ_CST);
}

static inline void a_or_64(volatile uint64_t *p, uint64_t bits)
{
    __atomic_fetch_or(p, bits, __ATOMIC_SEQ_CST);
}

static inline void a_and_64(volatile uint64_t *p, uint64_t bits)
{
    __atomic_fetch_and(p, bits, __ATOMIC_SEQ_CST);
}

static inline void a_crash(void)
{
    __builtin_trap();
}

static inline int a_ctz_32(uint32_t x)
{
    return __builtin_ctz(x);
}

static inline int a_ctz_64(uint64_t x)
{
    return __builtin_ctzll(x);
}

static inline int a_clz_32(uint32_t x)
{
    return __builtin_clz(x);
}

#endif
