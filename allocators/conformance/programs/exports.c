// Checks that the library defines and correctly serves every name of the ABI. argv[2] is the
// library. Without it, names that no object defines are skipped. Runs with little writable memory,
// so that blocks that are not freed are noticed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *at_work = "";

#define MUST(condition)                                                                  \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            dprintf(2, "%s: line %d: not so: %s\n", at_work, __LINE__, #condition);      \
            _exit(1);                                                                    \
        }                                                                                \
    } while (0)

// Parameters of a function; TAG is C++'s std::nothrow.
enum shape {
    SIZE,
    SIZE_TAG,
    SIZE_ALIGNMENT,
    SIZE_ALIGNMENT_TAG,
    ALIGNMENT_SIZE,
    COUNT_SIZE,
    PLACE_ALIGNMENT_SIZE,
    BLOCK,
    BLOCK_SIZE,
    BLOCK_COUNT_SIZE,
    BLOCK_TAG,
    BLOCK_ALIGNMENT,
    BLOCK_ALIGNMENT_TAG,
    BLOCK_ALIGNMENT_SIZE,
    BLOCK_SIZE_ALIGNMENT,
    OTHER,
};

struct function {
    const char *name;
    enum shape shape;
    void *address;
};

static struct function allocating[] = {
    {"malloc", SIZE, NULL},
    {"valloc", SIZE, NULL},
    {"pvalloc", SIZE, NULL},
    {"calloc", COUNT_SIZE, NULL},
    {"memalign", ALIGNMENT_SIZE, NULL},
    {"aligned_alloc", ALIGNMENT_SIZE, NULL},
    {"posix_memalign", PLACE_ALIGNMENT_SIZE, NULL},
    {"__libc_malloc", SIZE, NULL},
    {"__libc_valloc", SIZE, NULL},
    {"__libc_pvalloc", SIZE, NULL},
    {"__libc_calloc", COUNT_SIZE, NULL},
    {"__libc_memalign", ALIGNMENT_SIZE, NULL},
    {"__posix_memalign", PLACE_ALIGNMENT_SIZE, NULL},
    {"_Znwm", SIZE, NULL},
    {"_Znam", SIZE, NULL},
    {"_ZnwmRKSt9nothrow_t", SIZE_TAG, NULL},
    {"_ZnamRKSt9nothrow_t", SIZE_TAG, NULL},
    {"_ZnwmSt11align_val_t", SIZE_ALIGNMENT, NULL},
    {"_ZnamSt11align_val_t", SIZE_ALIGNMENT, NULL},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", SIZE_ALIGNMENT_TAG, NULL},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", SIZE_ALIGNMENT_TAG, NULL},
};

static struct function resizing[] = {
    {"realloc", BLOCK_SIZE, NULL},
    {"__libc_realloc", BLOCK_SIZE, NULL},
    {"reallocarray", BLOCK_COUNT_SIZE, NULL},
};

static struct function freeing[] = {
    {"free", BLOCK, NULL},
    {"cfree", BLOCK, NULL},
    {"__libc_free", BLOCK, NULL},
    {"__libc_cfree", BLOCK, NULL},
    {"free_sized", BLOCK_SIZE, NULL},
    {"free_aligned_sized", BLOCK_ALIGNMENT_SIZE, NULL},
    {"_ZdlPv", BLOCK, NULL},
    {"_ZdaPv", BLOCK, NULL},
    {"_ZdlPvm", BLOCK_SIZE, NULL},
    {"_ZdaPvm", BLOCK_SIZE, NULL},
    {"_ZdlPvRKSt9nothrow_t", BLOCK_TAG, NULL},
    {"_ZdaPvRKSt9nothrow_t", BLOCK_TAG, NULL},
    {"_ZdlPvSt11align_val_t", BLOCK_ALIGNMENT, NULL},
    {"_ZdaPvSt11align_val_t", BLOCK_ALIGNMENT, NULL},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", BLOCK_ALIGNMENT_TAG, NULL},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", BLOCK_ALIGNMENT_TAG, NULL},
    {"_ZdlPvmSt11align_val_t", BLOCK_SIZE_ALIGNMENT, NULL},
    {"_ZdaPvmSt11align_val_t", BLOCK_SIZE_ALIGNMENT, NULL},
};

enum { USABLE, TRIM, OPTION, NARROW, WIDE, REPORT, PRINT };
static struct function others[] = {
    [USABLE] = {"malloc_usable_size", OTHER, NULL},
    [TRIM] = {"malloc_trim", OTHER, NULL},
    [OPTION] = {"mallopt", OTHER, NULL},
    [NARROW] = {"mallinfo", OTHER, NULL},
    [WIDE] = {"mallinfo2", OTHER, NULL},
    [REPORT] = {"malloc_info", OTHER, NULL},
    [PRINT] = {"malloc_stats", OTHER, NULL},
};

#define COUNT(table) (sizeof(table) / sizeof *(table))
static const char tag;
static int wrong;

// Finds functions like every object of the process does, and reports those of other objects.
static void find(struct function *functions, size_t count, const char *library) {
    for (struct function *one = functions; one < functions + count; one++) {
        one->address = dlsym(RTLD_DEFAULT, one->name);
        if (library == NULL)
            continue;
        Dl_info where;
        struct stat own, other;
        MUST(stat(library, &own) == 0);
        if (one->address == NULL) {
            dprintf(2, "%s is missing\n", one->name);
        } else if (dladdr(one->address, &where) == 0 || stat(where.dli_fname, &other) != 0) {
            dprintf(2, "%s is in no file\n", one->name);
        } else if (own.st_dev != other.st_dev || own.st_ino != other.st_ino) {
            dprintf(2, "%s is that of %s\n", one->name, where.dli_fname);
        } else {
            continue;
        }
        wrong = 1;
    }
}

static void *allocate(const struct function *by, size_t alignment, size_t size) {
    void *block = NULL;
    switch (by->shape) {
    case SIZE:
        return ((void *(*)(size_t))by->address)(size);
    case SIZE_TAG:
        return ((void *(*)(size_t, const void *))by->address)(size, &tag);
    case SIZE_ALIGNMENT:
        return ((void *(*)(size_t, size_t))by->address)(size, alignment);
    case SIZE_ALIGNMENT_TAG:
        return ((void *(*)(size_t, size_t, const void *))by->address)(size, alignment, &tag);
    case ALIGNMENT_SIZE:
        return ((void *(*)(size_t, size_t))by->address)(alignment, size);
    case COUNT_SIZE:
        return ((void *(*)(size_t, size_t))by->address)(1, size);
    case PLACE_ALIGNMENT_SIZE:
        MUST(((int (*)(void **, size_t, size_t))by->address)(&block, alignment, size) == 0);
        return block;
    default:
        abort();
    }
}

static void release(const struct function *by, void *block, size_t alignment, size_t size) {
    switch (by->shape) {
    case BLOCK:
        return ((void (*)(void *))by->address)(block);
    case BLOCK_SIZE:
        return ((void (*)(void *, size_t))by->address)(block, size);
    case BLOCK_TAG:
        return ((void (*)(void *, const void *))by->address)(block, &tag);
    case BLOCK_ALIGNMENT:
        return ((void (*)(void *, size_t))by->address)(block, alignment);
    case BLOCK_ALIGNMENT_TAG:
        return ((void (*)(void *, size_t, const void *))by->address)(block, alignment, &tag);
    case BLOCK_ALIGNMENT_SIZE:
        return ((void (*)(void *, size_t, size_t))by->address)(block, alignment, size);
    case BLOCK_SIZE_ALIGNMENT:
        return ((void (*)(void *, size_t, size_t))by->address)(block, size, alignment);
    default:
        abort();
    }
}

static size_t usable(void *block) {
    return ((size_t (*)(void *))others[USABLE].address)(block);
}

// Returns the alignment that a function's blocks must have; `wanted` if it takes an alignment.
static size_t alignment_by(const struct function *by, size_t wanted) {
    if (strstr(by->name, "valloc") != NULL)
        return (size_t)sysconf(_SC_PAGESIZE);
    return by->shape == SIZE || by->shape == SIZE_TAG || by->shape == COUNT_SIZE ? 16 : wanted;
}

static void allocates(const struct function *by) {
    static const size_t sizes[] = {16, 100, 5000, 300000}, wanted[] = {64, 4096};
    for (size_t i = 0; i < COUNT(sizes) * COUNT(wanted); i++) {
        size_t size = sizes[i / COUNT(wanted)], alignment = alignment_by(by, wanted[i % COUNT(wanted)]);
        for (int round = 0; round < 3; round++) {
            char *block = allocate(by, alignment, size);
            MUST(block != NULL && (uintptr_t)block % alignment == 0);
            MUST(usable(block) >= size);
            if (by->shape == COUNT_SIZE)
                for (size_t at = 0; at < size; at++)
                    MUST(block[at] == 0);
            memset(block, 0xa5, size);
            free(block);
        }
    }
    if (by->shape == COUNT_SIZE) {
        void *product = ((void *(*)(size_t, size_t))by->address)(100, 77);
        MUST(product != NULL && usable(product) >= 7700);
        free(product);
    }
}

static char *resize(const struct function *by, char *block, size_t size) {
    if (by->shape == BLOCK_COUNT_SIZE)
        return ((char *(*)(void *, size_t, size_t))by->address)(block, size / 8, 8);
    return ((char *(*)(void *, size_t))by->address)(block, size);
}

static void resizes(const struct function *by) {
    static const size_t sizes[] = {16, 1000, 300000, 5000000, 70000, 16};
    char *block = NULL;
    for (size_t i = 0, before = 0; i < COUNT(sizes); before = sizes[i++]) {
        block = resize(by, block, sizes[i]);
        MUST(block != NULL && usable(block) >= sizes[i]);
        size_t kept = before < sizes[i] ? before : sizes[i];
        for (size_t at = 0; at < kept; at++)
            MUST(block[at] == (char)(at * 7));
        for (size_t at = 0; at < sizes[i]; at++)
            block[at] = (char)(at * 7);
    }
    free(block);
}

// Frees more blocks, one by one, than could exist at the same time.
static void frees(const struct function *by) {
    static const struct { size_t size, count; } loads[] = {{4000, 100000}, {16 << 20, 40}};
    size_t alignment = by->shape == BLOCK || by->shape == BLOCK_SIZE || by->shape == BLOCK_TAG ? 0 : 256;
    for (size_t i = 0; i < COUNT(loads); i++) {
        for (size_t round = 0; round < loads[i].count; round++) {
            size_t size = loads[i].size;
            void *block = alignment != 0 ? aligned_alloc(alignment, size) : malloc(size);
            MUST(block != NULL);
            release(by, block, alignment, size);
        }
    }
    release(by, NULL, alignment, 100);
}

static long resident_kib(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long size, resident;
    MUST(file != NULL && fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

// The memory of a burst of used and freed blocks is returned when trim is called.
static void trims(int (*trim)(size_t)) {
    enum { BLOCKS = 16000, BYTES = 4000 };
    static void *blocks[BLOCKS];
    long before = resident_kib();
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        MUST(blocks[i] != NULL);
        memset(blocks[i], 1, BYTES);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    int trimmed = trim(0);
    MUST(trimmed == 0 || trimmed == 1);
    MUST(resident_kib() < before + 32000);
}

static size_t narrow_bytes(void) {
    struct mallinfo now = ((struct mallinfo(*)(void))others[NARROW].address)();
    return (size_t)now.uordblks + (size_t)now.hblkhd;
}

static size_t wide_bytes(void) {
    struct mallinfo2 now = ((struct mallinfo2(*)(void))others[WIDE].address)();
    return now.uordblks + now.hblkhd;
}

// Both structures count a live block, in blocks or in mappings, and agree.
static void informs(void) {
    enum { BYTES = 8 << 20 };
    size_t before = wide_bytes();
    MUST(narrow_bytes() == before);
    void *block = malloc(BYTES);
    MUST(block != NULL && wide_bytes() >= before + BYTES);
    MUST(narrow_bytes() == wide_bytes());
    free(block);
}

static void reports(int (*report)(int, FILE *)) {
    FILE *text = tmpfile();
    char start[16] = "";
    MUST(text != NULL && report(1, text) != 0 && report(0, text) == 0);
    rewind(text);
    MUST(fgets(start, 9, text) != NULL && strcmp(start, "<malloc ") == 0);
    fclose(text);
}

static void prints(void (*print)(void)) {
    FILE *text = tmpfile();
    int error = dup(STDERR_FILENO);
    MUST(text != NULL && error >= 0 && dup2(fileno(text), STDERR_FILENO) >= 0);
    print();
    MUST(dup2(error, STDERR_FILENO) >= 0);
    MUST(lseek(fileno(text), 0, SEEK_END) > 0);
    fclose(text);
    close(error);
}

static void each(struct function *functions, size_t count, void (*check)(const struct function *)) {
    for (struct function *one = functions; one < functions + count; one++) {
        at_work = one->name;
        if (one->address != NULL)
            check(one);
    }
}

int main(int count, char **words) {
    MUST(count > 1 && strcmp(words[1], "exports") == 0);
    const char *library = count > 2 ? words[2] : NULL;
    find(allocating, COUNT(allocating), library);
    find(resizing, COUNT(resizing), library);
    find(freeing, COUNT(freeing), library);
    find(others, COUNT(others), library);
    if (wrong)
        return 1;
    each(allocating, COUNT(allocating), allocates);
    each(resizing, COUNT(resizing), resizes);
    each(freeing, COUNT(freeing), frees);
    at_work = "the others";
    MUST(usable(NULL) == 0);
    MUST(((int (*)(int, int))others[OPTION].address)(M_MMAP_THRESHOLD, 1 << 20) == 1);
    trims((int (*)(size_t))others[TRIM].address);
    informs();
    reports((int (*)(int, FILE *))others[REPORT].address);
    prints((void (*)(void))others[PRINT].address);
    return 0;
}
