// Checks of a program that is linked with the library, in C and in C++. HEADER is the library's
// header, LIBRARY its file.
#include HEADER

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MUST(condition)                                                          \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);      \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

// Fails unless the library defines the function of this name.
static void must_be_the_librarys(const char *name) {
    Dl_info where;
    void *address = dlsym(RTLD_DEFAULT, name);
    MUST(address != NULL && dladdr(address, &where) != 0);
    const char *file = strrchr(where.dli_fname, '/');
    MUST(file != NULL && strcmp(file + 1, LIBRARY) == 0);
}

// Uses everything that the header declares in addition to the C library's headers.
static void use_the_header(void) {
    must_be_the_librarys("malloc");
    must_be_the_librarys("free_sized");
    char *block = (char *)malloc(100);
    MUST(block != NULL && malloc_usable_size(block) >= 100);
    memset(block, 1, 100);
    free_sized(block, 100);
    block = (char *)aligned_alloc(256, 512);
    MUST(block != NULL && (uintptr_t)block % 256 == 0);
    memset(block, 1, 512);
    free_aligned_sized(block, 256, 512);
    free_sized(NULL, 7);
    free_aligned_sized(NULL, 16, 7);
}
