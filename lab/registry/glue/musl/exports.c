/* The rest of glibc's allocation functions, on top of musl's. If one were missing, the program
   would get memory from glibc's function and pass it to musl's free. */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

void *memalign(size_t alignment, size_t size)
{
    /* glibc rounds an odd alignment up to a power of two. */
    size_t power = sizeof(void *);
    while (power < alignment && power <= SIZE_MAX / 4) power *= 2;
    return aligned_alloc(power, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
    int saved = errno;
    void *memory = aligned_alloc(alignment, size);
    errno = saved;
    if (memory == NULL) return ENOMEM;
    *result = memory;
    return 0;
}

void *valloc(size_t size)
{
    return aligned_alloc(PAGE, size);
}

void *pvalloc(size_t size)
{
    if (size > SIZE_MAX - PAGE) {
        errno = ENOMEM;
        return NULL;
    }
    return aligned_alloc(PAGE, (size + PAGE - 1) & ~(PAGE - 1));
}

void *reallocarray(void *memory, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(memory, bytes);
}
