/* Replaces mallocng's own glue.h, so that mallocng runs on top of glibc. */

#ifndef MALLOC_GLUE_H
#define MALLOC_GLUE_H

#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include "atomic.h"
#include "break.h"
#include "dynlink.h"
#include "futex.h"

#define size_classes heapdrome_size_classes
#define ctx heapdrome_context
#define alloc_meta heapdrome_alloc_meta
#define is_allzero __malloc_allzerop
#define dump_heap heapdrome_dump_heap

#define assert(x) do { if (!(x)) a_crash(); } while (0)

#define brk(p) heapdrome_break((uintptr_t)(p))

#define DISABLE_ALIGNED_ALLOC 0
#if defined(__x86_64__)
#define PAGESIZE 4096
#else
#define get_page_size() ((size_t)sysconf(_SC_PAGESIZE))
#endif
#define MT (!__libc_single_threaded)
#define RDLOCK_IS_EXCLUSIVE 1

static inline uint64_t get_random_secret(void)
{
    uint64_t secret;
    memcpy(&secret, (const char *)getauxval(AT_RANDOM) + 8, sizeof secret);
    return secret;
}

/* 0 is free, 1 is locked, 2 is locked and a thread may be sleeping. */
hidden extern volatile int heapdrome_lock;

static inline void wrlock(void)
{
    if (!MT || a_cas(&heapdrome_lock, 0, 1) == 0) return;
    for (int spins = 0; spins < 100; spins++) {
        if (heapdrome_lock == 0 && a_cas(&heapdrome_lock, 0, 1) == 0) return;
        heapdrome_relax();
    }
    while (a_swap(&heapdrome_lock, 2) != 0) heapdrome_futex_wait(&heapdrome_lock, 2);
}

static inline void rdlock(void)
{
    wrlock();
}

static inline void unlock(void)
{
    /* A process with one thread has not taken the lock. */
    if (heapdrome_lock != 0 && a_swap(&heapdrome_lock, 0) == 2)
        heapdrome_futex_wake(&heapdrome_lock, 1);
}

static inline void upgradelock(void)
{
}

static inline void resetlock(void)
{
    a_store(&heapdrome_lock, 0);
}

/* `who` is negative before a fork, 0 after it in the parent, positive in the child. */
static inline void malloc_atfork(int who)
{
    if (who < 0) wrlock();
    else if (who == 0) unlock();
    else resetlock();
}

#define LOCK_OBJ_DEF \
    hidden volatile int heapdrome_lock; \
    hidden void __malloc_atfork(int who) { malloc_atfork(who); }

#endif
