/* libelfmalloc: the C and C++ allocation functions, implemented by elfmalloc.
 *
 * Linking with -lelfmalloc, or preloading the library, is enough: it provides malloc and related
 * functions under their own names. This header declares those that the C library's headers may
 * lack. */
#ifndef ELFMALLOC_H
#define ELFMALLOC_H

#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C23: frees a block whose requested size the caller knows. */
void free_sized(void *block, size_t size) __THROW;
/* C23: frees a block of aligned_alloc whose alignment and size the caller knows. */
void free_aligned_sized(void *block, size_t alignment, size_t size) __THROW;

#ifdef __cplusplus
}
#endif

#endif
