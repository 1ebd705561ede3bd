/* dlmalloc predates C11. Without this aligned_alloc, a program would get memory from glibc's,
   and pass it to dlmalloc's free. */

#include <stddef.h>

void *memalign(size_t alignment, size_t size);

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}
