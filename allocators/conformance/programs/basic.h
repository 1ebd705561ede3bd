/* Parts that all basic checks share: how they fail, and how they verify which allocator serves
   them. Exit statuses: 0 passed, 1 a fault was found and reported on standard error, 2 another
   allocator than the one to check serves malloc. */

#ifndef HEAPDROME_CHECK_COMMON_H
#define HEAPDROME_CHECK_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Exits without exit(), whose handlers may not survive a broken heap. */
#define FAIL(...) \
    do { \
        char message[400]; \
        int length = snprintf(message, sizeof message, __VA_ARGS__); \
        if (length > (int)sizeof message - 1) length = (int)sizeof message - 1; \
        message[length] = '\n'; \
        if (write(2, message, (size_t)length + 1) < 0) _exit(3); \
        _exit(1); \
    } while (0)

#define REQUIRE(condition, ...) \
    do { \
        if (!(condition)) FAIL(__VA_ARGS__); \
    } while (0)

static int is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    if (stat(one, &a) != 0 || stat(other, &b) != 0) return 0;
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Returns the file of the object that defines a function, as the loader resolved it. */
static const char *provider_of(const char *function)
{
    void *address = dlsym(RTLD_DEFAULT, function);
    Dl_info info;
    if (address == NULL || dladdr(address, &info) == 0 || info.dli_fname == NULL) return "";
    return info.dli_fname;
}

static int is_expected(const char *function)
{
    const char *expected = getenv("HEAPDROME_EXPECTED");
    return expected == NULL || is_same_file(provider_of(function), expected);
}

/* Returns whether a file is mapped into this process. Reads without stdio, whose buffer is
   allocated: an allocator that fails to serve it would look like one that is not loaded. */
static int is_mapped(const char *path)
{
    static char maps[1 << 20];
    char real[4096];
    size_t length = 0;
    ssize_t more = 0;
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0 || realpath(path, real) == NULL) return 0;
    do {
        length += (size_t)more;
        more = read(file, maps + length, sizeof maps - 1 - length);
    } while (more > 0);
    close(file);
    maps[length] = '\0';
    return strstr(maps, real) != NULL;
}

/* Exits with status 2 unless the expected allocator serves malloc. If the loader cannot preload it,
   the loader only warns, and the program runs on glibc. */
static void require_allocator(void)
{
    struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none);
    const char *expected = getenv("HEAPDROME_EXPECTED");
    if (expected == NULL) return;
    if (!is_mapped(expected) || !is_expected("malloc")) {
        fprintf(stderr, "malloc comes from %s\n", provider_of("malloc"));
        _exit(2);
    }
}

/* Returns the maximum of resident memory, in MiB. */
static long peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

/* Returns the next pseudo-random number (xorshift); the sequence is the same on every run. */
static inline uint64_t next_number(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Returns a size like those of programs: mostly small, sometimes large. */
static inline size_t some_size(uint64_t *state)
{
    uint64_t number = next_number(state);
    unsigned bits = (unsigned)(number % 100);
    size_t limit = bits < 90 ? 512 : bits < 99 ? 16384 : 400000;
    return 1 + (size_t)((number >> 8) % limit);
}

#endif
