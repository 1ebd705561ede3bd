/* The two things that musl's mallocs want to know about the process, asked of glibc. */

#ifndef HEAPDROME_MUSL_LIBC_H
#define HEAPDROME_MUSL_LIBC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/single_threaded.h>

#include "dynlink.h"

extern char **environ;

struct heapdrome_libc {
    int need_locks;
    void *auxv;
};

/* glibc clears __libc_single_threaded before it starts a second thread, and a thread that runs
   alone cannot become two in the middle of malloc. The environment lies beside the auxiliary
   vector at the top of the main stack; oldmalloc only wants to stay clear of that stack. A program
   that replaced its environment is caught by the kernel, which refuses to grow the heap into a
   mapping. */
#define libc ((struct heapdrome_libc){ !__libc_single_threaded, (void *)environ })

#endif
