// Exhausted memory: NULL and ENOMEM, and everything works once some has been freed. Runs with a low
// limit on address space or on writable memory.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "must.h"

struct block {
    struct block *next;
};

static struct block *fill(size_t size, size_t *count) {
    struct block *all = NULL, *one;
    errno = 0;
    while ((one = malloc(size)) != NULL) {
        one->next = all;
        all = one;
        ++*count;
    }
    MUST(errno == ENOMEM);
    errno = 0;
    MUST(calloc(1, (size_t)300 << 20) == NULL && errno == ENOMEM);
    return all;
}

static void drain(struct block *all) {
    while (all != NULL) {
        struct block *next = all->next;
        free(all);
        all = next;
    }
}

// realloc to a smaller size succeeds, even if no memory is left.
static struct block *shrink(struct block *one) {
    struct block *next = one->next;
    one = realloc(one, sizeof *one);
    MUST(one != NULL && one->next == next);
    return one;
}

// Fills memory repeatedly: each time there must be at least this much. A failed realloc leaves the
// block unchanged.
static void cycles(size_t size, size_t least_bytes) {
    for (int round = 0; round < 5; round++) {
        size_t count = 0;
        struct block *all = fill(size, &count);
        MUST(count * size >= least_bytes);
        struct block *second = all->next;
        errno = 0;
        MUST(realloc(all, (size_t)300 << 20) == NULL && errno == ENOMEM);
        MUST(all->next == second);
        drain(shrink(all));
    }
    void *block = malloc(size);
    MUST(block != NULL);
    free(block);
}

// Memory that is too little for a large block serves small ones, and freed memory serves all sizes.
static void mixed(void) {
    for (int round = 0; round < 3; round++) {
        size_t large = 0, small = 0;
        struct block *large_ones = fill(3 << 20, &large), *small_ones = fill(64, &small);
        MUST(large * (3 << 20) + small * 64 >= (size_t)128 << 20);
        drain(shrink(large_ones));
        drain(shrink(small_ones));
    }
}

// Freed blocks of one size serve every other size.
static void sizes(void) {
    static const size_t all[] = {1000, 64, 5000, 300, 100000, 1000};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t count = 0;
        drain(fill(all[i], &count));
        MUST(count * all[i] >= (size_t)128 << 20);
    }
}

typedef void *aligning(size_t alignment, size_t size);

static void *by_posix(size_t alignment, size_t size) {
    static char mark;
    void *place = &mark;
    int error = posix_memalign(&place, alignment, size);
    if (error == 0)
        return place;
    MUST(error == ENOMEM && place == &mark);
    errno = ENOMEM;
    return NULL;
}

static void *by_page(size_t page, size_t size) { return (void)page, valloc(size); }
static void *by_pages(size_t page, size_t size) { return (void)page, pvalloc(size); }

// Aligned blocks use up the memory, and all of it serves again.
static void aligned_cycles(aligning *align, size_t alignment, size_t size, size_t least_bytes) {
    for (int round = 0; round < 2; round++) {
        struct block *all = NULL, *one;
        size_t count = 0;
        errno = 0;
        while ((one = align(alignment, size)) != NULL) {
            MUST((uintptr_t)one % alignment == 0);
            one->next = all;
            all = one;
            count++;
        }
        MUST(errno == ENOMEM);
        MUST(count * size >= least_bytes);
        drain(all);
    }
}

static void aligned(void) {
    static aligning *const ways[] = {memalign, aligned_alloc, by_posix, by_page, by_pages};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int pages_only = ways[i] == by_page || ways[i] == by_pages;
        aligned_cycles(ways[i], page, 5000, (size_t)64 << 20);
        aligned_cycles(ways[i], pages_only ? page : (size_t)1 << 20, 3 << 20, (size_t)64 << 20);
        if (!pages_only)
            aligned_cycles(ways[i], 256, 1000, (size_t)64 << 20);
    }
}

static void *cycle(void *size) {
    for (int round = 0; round < 20; round++) {
        struct block *all = NULL, *one;
        for (int i = 0; i < 2000000 && (one = malloc((size_t)size)) != NULL; i++) {
            one->next = all;
            all = one;
        }
        drain(all);
    }
    return NULL;
}

static void threads(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 << 10);
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], &attributes, cycle, (void *)(200 + i * 3000)) == 0);
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    // Memory of the ended threads serves this one.
    size_t count = 0;
    drain(fill(5000, &count));
    MUST(count * 5000 >= (size_t)64 << 20);
}

int main(int count, char **words) {
    MUST(count > 1);
    if (strcmp(words[1], "exhaustion-small") == 0 || strcmp(words[1], "committed-small") == 0)
        cycles(64, (size_t)64 << 20);
    else if (strcmp(words[1], "exhaustion-large") == 0 || strcmp(words[1], "committed-large") == 0)
        cycles(3 << 20, (size_t)128 << 20);
    else if (strcmp(words[1], "committed-mixed") == 0)
        mixed();
    else if (strcmp(words[1], "exhaustion-sizes") == 0)
        sizes();
    else if (strcmp(words[1], "exhaustion-aligned") == 0)
        aligned();
    else if (strcmp(words[1], "exhaustion-threads") == 0)
        threads();
    else
        return 2;
    return 0;
}
