/* Aligned allocation: every function for it, every alignment up to 4 MiB, and its guarantees. */

#include "basic.h"

#include <errno.h>
#include <malloc.h>

#define LIVE 64

typedef void *(*allocate_fn)(size_t, size_t);

static void *by_posix_memalign(size_t alignment, size_t size)
{
    void *memory = NULL;
    int error = posix_memalign(&memory, alignment, size);
    REQUIRE(error == 0, "posix_memalign(%zu, %zu) said %s", alignment, size, strerror(error));
    return memory;
}

static void fill_and_free(void **live, size_t *sizes)
{
    for (int i = 0; i < LIVE; i++) {
        unsigned char *bytes = live[i];
        for (size_t at = 0; at < sizes[i]; at += 61)
            REQUIRE(bytes[at] == (unsigned char)i, "aligned objects overlap");
        if (i % 2 == 0) {
            unsigned char *moved = realloc(live[i], sizes[i] + 500);
            REQUIRE(moved != NULL && moved[0] == (unsigned char)i,
                    "realloc of an aligned object lost its contents");
            live[i] = moved;
        }
    }
    for (int i = 0; i < LIVE; i++) free(live[i]);
}

static void every_alignment(const char *name, allocate_fn allocate, int strict)
{
    uint64_t state = 88172645463325252u;
    for (size_t alignment = sizeof(void *); alignment <= (size_t)4 << 20; alignment *= 2) {
        void *live[LIVE];
        size_t sizes[LIVE];
        int rounds = alignment > 65536 ? 1 : 10;
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < LIVE; i++) {
                sizes[i] = some_size(&state) % 20000 + 1;
                /* C11 at first required a multiple of the alignment for aligned_alloc. */
                if (strict) sizes[i] = (sizes[i] + alignment - 1) & -alignment;
                live[i] = allocate(alignment, sizes[i]);
                REQUIRE(live[i] != NULL, "%s(%zu, %zu) gave nothing", name, alignment, sizes[i]);
                REQUIRE((uintptr_t)live[i] % alignment == 0, "%s(%zu, %zu) gave %p", name,
                        alignment, sizes[i], live[i]);
                memset(live[i], i, sizes[i]);
            }
            fill_and_free(live, sizes);
        }
    }
}

/* Whether aligned_alloc refuses a size that is not a multiple of the alignment. */
static int is_strict(void)
{
    void *memory = aligned_alloc(64, 100);
    if (memory == NULL) puts("aligned_alloc refuses a size that is not a multiple of the alignment");
    free(memory);
    return memory == NULL;
}

static void usable_sizes(void)
{
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        void *memory = memalign(alignment, 100);
        REQUIRE(malloc_usable_size(memory) >= 100,
                "malloc_usable_size says %zu of an object of 100 aligned to %zu",
                malloc_usable_size(memory), alignment);
        free(memory);
    }
}

static void page_functions(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (is_expected("valloc")) {
        void *memory = valloc(100);
        REQUIRE((uintptr_t)memory % page == 0, "valloc did not align to a page");
        free(memory);
    } else {
        puts("lacks valloc");
    }
    if (is_expected("pvalloc")) {
        void *memory = pvalloc(page + 1);
        REQUIRE((uintptr_t)memory % page == 0, "pvalloc did not align to a page");
        REQUIRE(malloc_usable_size(memory) >= 2 * page, "pvalloc did not round up to pages");
        free(memory);
    } else {
        puts("lacks pvalloc");
    }
}

int main(void)
{
    static const char *const needed[] = { "free",          "calloc",         "realloc",
                                          "aligned_alloc", "posix_memalign", "memalign",
                                          "malloc_usable_size" };
    require_allocator();
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        REQUIRE(is_expected(needed[i]), "%s comes from %s", needed[i], provider_of(needed[i]));
    every_alignment("posix_memalign", by_posix_memalign, 0);
    every_alignment("memalign", memalign, 0);
    every_alignment("aligned_alloc", aligned_alloc, is_strict());
    void *untouched = (void *)&untouched;
    REQUIRE(posix_memalign(&untouched, 24, 100) == EINVAL, "posix_memalign took 24 as an alignment");
    page_functions();
    usable_sizes();
    REQUIRE(peak_mib() < 1024, "%ld MiB were resident for little", peak_mib());
    return 0;
}
