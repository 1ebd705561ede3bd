/* The end of the heap segment, shared with glibc and with programs that call sbrk themselves. */

#ifndef HEAPDROME_MUSL_BREAK_H
#define HEAPDROME_MUSL_BREAK_H

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

/* Acts like the system call brk: moves the break if `end` is not 0, and returns it. It calls
   glibc's functions, so that glibc's own record of the break stays correct. It refuses if other
   code has moved the break, and musl's mallocs then use mappings instead. They call it under
   their lock. */
static uintptr_t heapdrome_break(uintptr_t end)
{
    static uintptr_t last;
    int saved = errno;
    uintptr_t now = (uintptr_t)sbrk(0);
    if (end > now && (!last || last == now) && brk((void *)end) == 0) now = last = end;
    errno = saved;
    return now;
}

#endif
