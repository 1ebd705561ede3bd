/* Locks' waiting and the heap's break, as musl's oldmalloc needs them. */

#ifndef HEAPDROME_MUSL_PTHREAD_IMPL_H
#define HEAPDROME_MUSL_PTHREAD_IMPL_H

#include <sys/syscall.h>
#include <sys/mman.h>

#include "atomic.h"
#include "break.h"
#include "dynlink.h"
#include "futex.h"

#if defined(__x86_64__)
#define PAGE_SIZE 4096
#else
#define PAGE_SIZE ((size_t)sysconf(_SC_PAGESIZE))
#endif

#define __mmap mmap
#define __munmap munmap
#define __mremap mremap
#define __madvise madvise

/* The only system call in oldmalloc is SYS_brk. */
#undef __syscall
#define __syscall(number, value) heapdrome_break(value)

/* Sleeps while *word is value; *waiters counts the sleepers. */
static inline void __wait(volatile int *word, volatile int *waiters, int value, int is_private)
{
    (void)is_private;
    for (int spins = 0; spins < 100; spins++) {
        if (*word != value) return;
        heapdrome_relax();
    }
    __atomic_fetch_add(waiters, 1, __ATOMIC_SEQ_CST);
    while (*word == value) heapdrome_futex_wait(word, value);
    __atomic_fetch_sub(waiters, 1, __ATOMIC_SEQ_CST);
}

static inline void __wake(volatile int *word, int count, int is_private)
{
    (void)is_private;
    heapdrome_futex_wake(word, count);
}

#endif
