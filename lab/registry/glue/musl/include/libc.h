/* The two properties of the process that musl's mallocs need, from glibc. */

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

/* glibc clears __libc_single_threaded before it starts a second thread, and no second thread can
   start while the only one is in malloc. The environment is near the auxiliary vector at the top
   of the main stack; oldmalloc only needs it to stay clear of that stack. If a program replaced
   its environment, the kernel refuses to grow the heap into a mapping. */
#define libc ((struct heapdrome_libc){ !__libc_single_threaded, (void *)environ })

#endif
