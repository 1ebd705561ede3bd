/* Forwards malloc to glibc, and performs EXTRA steps of work at the start of a process. Libraries
   built from this file differ only in EXTRA, so their true differences in processor time are
   known. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>

#include "steps.h"

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) { return __libc_malloc(size); }
void free(void *block) { __libc_free(block); }
void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }
void *memalign(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    void *got = __libc_memalign(alignment, size);
    if (!got) return ENOMEM;
    *block = got;
    return 0;
}

__attribute__((constructor)) static void start(void) { work(EXTRA); }
