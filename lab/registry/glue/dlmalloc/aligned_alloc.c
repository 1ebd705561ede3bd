/* dlmalloc is older than C11. Without an aligned_alloc of its own, a program that calls it would
   get memory from glibc, and hand it to dlmalloc's free. */

#include <stddef.h>

void *memalign(size_t alignment, size_t size);

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}
