/* What must hold in a program of the suite. A condition that does not is shown with its line, and ends the process
   with status 1: at once, since exit handlers may need the heap that is broken. */

#ifndef HEAPDROME_MUST_H
#define HEAPDROME_MUST_H

#include <stdio.h>
#include <unistd.h>

#define MUST(condition)                                                          \
    do {                                                                         \
        if (!(condition)) {                                                      \
            dprintf(2, "line %d: not so: %s\n", __LINE__, #condition);           \
            _exit(1);                                                            \
        }                                                                        \
    } while (0)

#endif
