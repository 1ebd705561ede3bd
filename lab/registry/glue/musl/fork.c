/* Locks the heap around fork, so that a child never finds it in an inconsistent state. */

#include <pthread.h>

#include "dynlink.h"

static void before(void)
{
    __malloc_atfork(-1);
}

static void in_parent(void)
{
    __malloc_atfork(0);
}

static void in_child(void)
{
    __malloc_atfork(1);
}

__attribute__((constructor)) static void watch_fork(void)
{
    pthread_atfork(before, in_parent, in_child);
}
