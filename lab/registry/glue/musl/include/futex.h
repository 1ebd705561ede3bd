/* Functions that sleep on a word in memory and wake its sleepers. */

#ifndef HEAPDROME_MUSL_FUTEX_H
#define HEAPDROME_MUSL_FUTEX_H

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void heapdrome_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static inline void heapdrome_futex_wait(volatile int *word, int value)
{
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, (void *)0);
    errno = saved;
}

static inline void heapdrome_futex_wake(volatile int *word, int count)
{
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count);
    errno = saved;
}

#endif
