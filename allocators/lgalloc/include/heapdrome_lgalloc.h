#ifndef HEAPDROME_LGALLOC_H
#define HEAPDROME_LGALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A region of 2 MiB to 64 GiB. Pass it back exactly as it was given. */
typedef struct {
    void *start;
    size_t bytes;
} heapdrome_region;

/* Allocates at least `bytes`. 0, or ENOMEM and *region is left alone. Contents are undefined. */
int heapdrome_lgalloc_allocate(size_t bytes, heapdrome_region *region);

/* Takes a region back, from any thread. */
void heapdrome_lgalloc_deallocate(heapdrome_region region);

/* Grows or shrinks a region, contents kept; it may move. 0, or ENOMEM and nothing has changed. */
int heapdrome_lgalloc_resize(heapdrome_region *region, size_t bytes);

/* Begins to bring bytes into memory that may be in swap. 0, ERANGE, or what madvise reports. */
int heapdrome_lgalloc_prefetch(heapdrome_region region, size_t offset, size_t length);

#ifdef __cplusplus
}
#endif

#endif
