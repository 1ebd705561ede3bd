/* MUST checks a condition. If it is false, MUST prints it with its line, and exits with status 1,
   without exit handlers, since those may need the broken heap. */

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
