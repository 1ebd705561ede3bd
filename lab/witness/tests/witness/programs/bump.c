/* Allocator for tests: allocates from one area and never frees. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static _Atomic(char *) area;
static atomic_size_t used;
#define LENGTH ((size_t)1 << 36)

static char *base(void) {
    char *known = atomic_load(&area);
    if (known)
        return known;
    char *fresh = mmap(0, LENGTH, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!atomic_compare_exchange_strong(&area, &known, fresh)) {
        munmap(fresh, LENGTH);
        return known;
    }
    return fresh;
}

static void *take(size_t align, size_t size) {
    if (size > LENGTH / 2) {
        errno = ENOMEM;
        return 0;
    }
    if (align < 16)
        align = 16;
    char *from = base();
    size_t at = atomic_fetch_add(&used, size + 2 * align + 16);
    uintptr_t start = ((uintptr_t)from + at + 16 + align - 1) & ~(uintptr_t)(align - 1);
    ((size_t *)start)[-1] = size;
    return (void *)start;
}

void *malloc(size_t size) { return take(16, size); }
void free(void *pointer) { (void)pointer; }
void *calloc(size_t n, size_t size) { return take(16, n * size); }
size_t malloc_usable_size(void *pointer) { return pointer ? ((size_t *)pointer)[-1] : 0; }
void *realloc(void *old, size_t size) {
    void *fresh = take(16, size);
    if (old && fresh) {
        size_t had = malloc_usable_size(old);
        memcpy(fresh, old, had < size ? had : size);
    }
    return fresh;
}
void *memalign(size_t align, size_t size) { return take(align, size); }
void *aligned_alloc(size_t align, size_t size) { return take(align, size); }
int posix_memalign(void **to, size_t align, size_t size) {
    *to = take(align, size);
    return *to ? 0 : ENOMEM;
}
