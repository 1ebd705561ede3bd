// Corners of the C functions. argv[1] names the check.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "must.h"

static const size_t sizes[] = {0, 1, 15, 16, 17, 100, 1000, 4096, 70000, 300000, 2000000, 40000000};
#define SIZES (sizeof sizes / sizeof *sizes)

static void errno_kept(void) {
    for (size_t i = 0; i < SIZES; i++) {
        void *block = malloc(sizes[i]);
        MUST(block != NULL);
        errno = 12345;
        free(block);
        MUST(errno == 12345);
        free(NULL);
        MUST(errno == 12345);
        block = malloc(sizes[i]);
        void *other = realloc(block, sizes[i] + 10);
        MUST(block != NULL && other != NULL && errno == 12345);
        free(other);
        MUST(errno == 12345);
    }
}

static void overflow(void) {
    size_t half = (size_t)1 << 32;
    errno = 0;
    MUST(calloc(half, half) == NULL && errno == ENOMEM);
    errno = 0;
    MUST(calloc(SIZE_MAX / 8 + 2, 8) == NULL && errno == ENOMEM);
    char *block = malloc(10);
    strcpy(block, "unchanged");
    errno = 0;
    MUST(reallocarray(block, half, half + 1) == NULL && errno == ENOMEM);
    MUST(strcmp(block, "unchanged") == 0);
    block = reallocarray(block, 5, 7);
    MUST(block != NULL && strcmp(block, "unchanged") == 0);
    free(block);
}

static void too_large(void) {
    size_t large[] = {(size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096, SIZE_MAX - 15, SIZE_MAX};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        errno = 0;
        MUST(malloc(large[i]) == NULL && errno == ENOMEM);
        errno = 0;
        MUST(calloc(1, large[i]) == NULL && errno == ENOMEM);
        errno = 0;
        MUST(memalign(64, large[i]) == NULL && errno == ENOMEM);
        errno = 0;
        MUST(aligned_alloc(64, large[i]) == NULL && errno == ENOMEM);
        errno = 0;
        MUST(pvalloc(large[i]) == NULL && errno == ENOMEM);
        char *block = malloc(10);
        strcpy(block, "unchanged");
        errno = 0;
        MUST(realloc(block, large[i]) == NULL && errno == ENOMEM);
        MUST(strcmp(block, "unchanged") == 0);
        free(block);
        errno = 0;
        MUST(realloc(NULL, large[i]) == NULL && errno == ENOMEM);
    }
}

static void unique_empty(void) {
    enum { COUNT = 1000 };
    static void *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = i % 3 ? malloc(0) : calloc(0, i);
        MUST(blocks[i] != NULL);
        for (int j = 0; j < i; j++)
            MUST(blocks[j] != blocks[i]);
    }
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);
}

static void posix_memalign_errors(void) {
    char mark;
    size_t wrong[] = {0, 1, 2, 4, 3, 12, 24, 48, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        void *place = &mark;
        errno = 12345;
        MUST(posix_memalign(&place, wrong[i], 10) == EINVAL);
        MUST(place == &mark && errno == 12345);
    }
    void *place = &mark;
    MUST(posix_memalign(&place, 64, SIZE_MAX - 100) == ENOMEM);
    MUST(place == &mark);
    MUST(posix_memalign(&place, 8, 0) == 0);
    free(place);
}

static void realloc_to_nothing(void) {
    for (size_t i = 0; i < SIZES; i++) {
        for (int round = 0; round < 3; round++) {
            void *block = malloc(sizes[i]);
            MUST(block != NULL);
            MUST(realloc(block, 0) == NULL);
        }
    }
    void *block = realloc(NULL, 0);
    MUST(block != NULL);
    free(block);
    // If realloc to size 0 freed nothing, this would need 400 GB.
    for (int round = 0; round < 10000; round++) {
        block = malloc(40000000);
        MUST(block != NULL);
        MUST(realloc(block, 0) == NULL);
    }
}

static void check_aligned(char *block, size_t alignment, size_t size) {
    MUST(block != NULL);
    MUST((uintptr_t)block % alignment == 0);
    MUST(malloc_usable_size(block) >= size);
    memset(block, 1, size);
}

static void alignment(void) {
    for (size_t i = 0; i < SIZES - 1; i++) {
        char *kept[64];
        size_t count = 0;
        for (size_t power = 8; power <= (size_t)4 << 20; power *= 2) {
            void *place;
            MUST(posix_memalign(&place, power, sizes[i]) == 0);
            check_aligned(kept[count++] = place, power, sizes[i]);
            check_aligned(kept[count++] = memalign(power, sizes[i]), power, sizes[i]);
            check_aligned(kept[count++] = aligned_alloc(power, sizes[i]), power, sizes[i]);
        }
        check_aligned(kept[count++] = malloc(sizes[i]), sizes[i] < 16 ? 8 : 16, sizes[i]);
        check_aligned(kept[count++] = memalign(48, sizes[i]), 64, sizes[i]);
        check_aligned(kept[count++] = memalign(1, sizes[i]), 1, sizes[i]);
        while (count > 0) {
            // Aligned blocks of any kind may be resized, and keep their contents.
            char *block = realloc(kept[--count], sizes[i] + 100);
            MUST(block != NULL);
            for (size_t at = 0; at < sizes[i]; at += 511)
                MUST(block[at] == 1);
            free(block);
        }
    }
}

static void zeroing(void) {
    for (int round = 0; round < 30; round++) {
        for (size_t i = 0; i < SIZES - 1; i++) {
            char *block = calloc(1, sizes[i]);
            MUST(block != NULL);
            for (size_t at = 0; at < sizes[i]; at++)
                MUST(block[at] == 0);
            memset(block, 0xa5, sizes[i]);
            free(block);
            block = malloc(sizes[i]);
            memset(block, 0x5a, sizes[i]);
            free(realloc(block, sizes[i] / 2 + 1));
        }
    }
}

static void usable_size(void) {
    MUST(malloc_usable_size(NULL) == 0);
    for (size_t size = 0; size < 5000; size += 7) {
        unsigned char *one = malloc(size), *two = malloc(size), *three = calloc(size, 1);
        size_t usable = malloc_usable_size(two);
        MUST(usable >= size);
        memset(one, 1, malloc_usable_size(one));
        memset(three, 3, malloc_usable_size(three));
        memset(two, 2, usable);
        for (size_t at = 0; at < size; at++)
            MUST(one[at] == 1 && two[at] == 2 && three[at] == 3);
        MUST(malloc_usable_size(two) == usable);
        free(one);
        free(two);
        free(three);
    }
}

static void fill(unsigned char *block, size_t from, size_t to) {
    for (size_t at = from; at < to; at++)
        block[at] = (unsigned char)(at * 31 + (at >> 8));
}

static void verify(unsigned char *block, size_t size) {
    MUST(block != NULL);
    for (size_t at = 0; at < size; at++)
        MUST(block[at] == (unsigned char)(at * 31 + (at >> 8)));
}

// Returns whether the program may read at an address.
static int is_readable(const void *address) {
    int ends[2];
    MUST(pipe(ends) == 0);
    ssize_t written = write(ends[1], address, 1);
    MUST(written == 1 || errno == EFAULT);
    close(ends[0]);
    close(ends[1]);
    return written == 1;
}

// A block of no bytes has at least one usable byte, or cannot be accessed, for every function.
static void usable_empty(void) {
    for (int round = 0; round < 100; round++) {
        void *place = NULL;
        MUST(posix_memalign(&place, 64, 0) == 0);
        unsigned char *blocks[] = {malloc(0),       calloc(0, 8),         calloc(8, 0), place,
                                   realloc(NULL, 0), aligned_alloc(64, 0), memalign(64, 0)};
        enum { COUNT = sizeof blocks / sizeof *blocks };
        for (int i = 0; i < COUNT; i++) {
            MUST(blocks[i] != NULL);
            MUST(malloc_usable_size(blocks[i]) >= 1 || !is_readable(blocks[i]));
            memset(blocks[i], i + 1, malloc_usable_size(blocks[i]));
        }
        for (int i = 0; i < COUNT; i++) {
            MUST(malloc_usable_size(blocks[i]) == 0 || blocks[i][0] == i + 1);
            free(blocks[i]);
        }
    }
}

// A block of an extreme alignment or size is either correct, or null with ENOMEM.
static void check_extreme(char *block, size_t alignment, size_t size) {
    if (block == NULL) {
        MUST(errno == ENOMEM);
        return;
    }
    MUST(errno == 12345);
    MUST((uintptr_t)block % alignment == 0);
    MUST(size <= PTRDIFF_MAX && malloc_usable_size(block) >= size);
    free(block);
}

static void check_extreme_posix(size_t alignment, size_t size) {
    char mark;
    void *place = &mark;
    errno = 12345;
    int error = posix_memalign(&place, alignment, size);
    if (error == 0) {
        check_extreme(place, alignment, size);
        return;
    }
    // glibc also sets errno, which POSIX does not require. Both are accepted.
    MUST(error == ENOMEM && place == &mark && (errno == 12345 || errno == ENOMEM));
}

// Alignments that are not a power of two and cannot be rounded up to one. glibc sets EINVAL. Other
// allocators may set ENOMEM.
static void check_wrong(size_t alignment, size_t size) {
    char mark;
    void *place = &mark;
    errno = 12345;
    MUST(posix_memalign(&place, alignment, size) == EINVAL);
    MUST(place == &mark && errno == 12345);
    MUST(memalign(alignment, size) == NULL && (errno == EINVAL || errno == ENOMEM));
    errno = 12345;
    MUST(aligned_alloc(alignment, size) == NULL && (errno == EINVAL || errno == ENOMEM));
}

static void extreme_alignment(void) {
    static const size_t all[] = {0, 1, 100, 4097, 1 << 20, (size_t)1 << 32, (size_t)1 << 46,
                                 PTRDIFF_MAX - 4096, PTRDIFF_MAX, (size_t)1 << 63, SIZE_MAX - 4096,
                                 SIZE_MAX};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (size_t power = 16; power != 0; power *= 2) {
            errno = 12345;
            check_extreme(memalign(power, all[i]), power, all[i]);
            errno = 12345;
            check_extreme(aligned_alloc(power, all[i]), power, all[i]);
            check_extreme_posix(power, all[i]);
        }
        check_wrong(SIZE_MAX, all[i]);
        check_wrong(SIZE_MAX - 7, all[i]);
        check_wrong(((size_t)1 << 63) + 1, all[i]);
        errno = 12345;
        check_extreme(valloc(all[i]), 4096, all[i]);
        errno = 12345;
        check_extreme(pvalloc(all[i]), 4096, all[i]);
    }
}

// Grows and shrinks a block through every eighth of each power of two, and one byte to both sides.
static void realloc_boundaries(void) {
    static size_t steps[1000];
    size_t count = 0;
    for (size_t power = 16; power <= (size_t)4 << 20; power *= 2)
        for (size_t eighth = 0; eighth < 8; eighth++)
            for (size_t off = 0; off < 3; off++)
                steps[count++] = power + power / 8 * eighth + off - 1;
    unsigned char *block = malloc(1);
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        block = realloc(block, steps[i]);
        verify(block, size < steps[i] ? size : steps[i]);
        void *between = i % 5 ? malloc(steps[i] % 777) : NULL;
        size = steps[i];
        fill(block, 0, size);
        free(between);
    }
    while (count-- > 0) {
        block = realloc(block, steps[count]);
        size = steps[count] < size ? steps[count] : size;
        verify(block, size);
    }
    free(block);
}

static void information(void) {
    void *block = malloc(3000000);
    struct mallinfo2 wide = mallinfo2();
    MUST(wide.arena + wide.hblkhd > 0);
    struct mallinfo narrow = mallinfo();
    MUST(narrow.arena != 0 || narrow.hblkhd != 0);
    MUST(malloc_info(1, stdout) != 0);
    FILE *text = tmpfile();
    MUST(text != NULL);
    MUST(malloc_info(0, text) == 0);
    char start[16] = "";
    rewind(text);
    MUST(fgets(start, 9, text) != NULL);
    MUST(strcmp(start, "<malloc ") == 0);
    fclose(text);
    MUST(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1);
    free(block);
    int trimmed = malloc_trim(0);
    MUST(trimmed == 0 || trimmed == 1);
    block = malloc(100);
    MUST(block != NULL);
    free(block);
}

static void page_aligned(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < SIZES; i++) {
        void *one = valloc(sizes[i]), *two = pvalloc(sizes[i]);
        MUST(one != NULL && (uintptr_t)one % page == 0);
        MUST(two != NULL && (uintptr_t)two % page == 0);
        MUST(malloc_usable_size(two) >= (sizes[i] + page - 1) / page * page);
        free(one);
        free(two);
    }
}

// An allocator must not load C++'s runtime into a C program.
static void no_cxx_runtime(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    MUST(maps != NULL);
    static char line[5000];
    while (fgets(line, sizeof line, maps))
        MUST(strstr(line, "libstdc++") == NULL && strstr(line, "libc++") == NULL);
    fclose(maps);
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)(void);
    } checks[] = {
        {"errno-kept", errno_kept},
        {"overflow", overflow},
        {"too-large", too_large},
        {"unique-empty", unique_empty},
        {"posix-memalign-errors", posix_memalign_errors},
        {"realloc-to-nothing", realloc_to_nothing},
        {"alignment", alignment},
        {"zeroing", zeroing},
        {"usable-size", usable_size},
        {"usable-empty", usable_empty},
        {"extreme-alignment", extreme_alignment},
        {"realloc-boundaries", realloc_boundaries},
        {"information", information},
        {"page-aligned", page_aligned},
        {"no-cxx-runtime", no_cxx_runtime},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (count > 1 && strcmp(words[1], checks[i].name) == 0) {
            checks[i].run();
            return 0;
        }
    }
    fprintf(stderr, "no such check\n");
    return 2;
}
