// A limit on address space that the program sets on itself after it has started and allocated. An
// allocator that reserves addresses in advance must leave enough of them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "must.h"

enum { MIB = 1 << 20, LIMIT = 200 * MIB, THREADS = 4 };

struct block {
    struct block *next;
    size_t size;
};

// Allocates a block, and writes its last byte and its first words.
static struct block *add(struct block *all, size_t size) {
    struct block *one = malloc(size);
    if (one == NULL)
        return NULL;
    ((char *)one)[size - 1] = 'e';
    one->next = all;
    one->size = size;
    return one;
}

static void drain(struct block *all) {
    while (all != NULL) {
        struct block *next = all->next;
        MUST(all->size <= sizeof *all || ((char *)all)[all->size - 1] == 'e');
        free(all);
        all = next;
    }
}

static struct block *some(size_t size, size_t bytes) {
    struct block *all = NULL;
    for (size_t done = 0; done < bytes; done += size) {
        all = add(all, size);
        MUST(all != NULL);
    }
    return all;
}

// Allocates before the program limits itself. Some of the blocks stay.
static struct block *begin(void) {
    struct block *kept = some(100, 2 * MIB);
    drain(some(64, 8 * MIB));
    drain(some(10000, 8 * MIB));
    drain(some(3 * MIB, 24 * MIB));
    return kept;
}

static void limit(void) {
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = LIMIT;
    MUST(setrlimit(RLIMIT_AS, &limit) == 0);
}

static pthread_barrier_t meeting;

static void *allocate_in_thread(void *unused) {
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    drain(some(100, MIB));
    drain(some(20000, MIB));
    return unused;
}

static void map_things(void) {
    const int access = PROT_READ | PROT_WRITE;
    void *anonymous = mmap(NULL, 16 * MIB, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(anonymous != MAP_FAILED);
    memset(anonymous, 1, MIB);
    int file = memfd_create("file", 0);
    MUST(file >= 0 && ftruncate(file, 4 * MIB) == 0);
    void *mapped = mmap(NULL, 4 * MIB, access, MAP_SHARED, file, 0);
    MUST(mapped != MAP_FAILED);
    ((char *)mapped)[4 * MIB - 1] = 1;
    MUST(munmap(mapped, 4 * MIB) == 0 && close(file) == 0);
    void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        dprintf(2, "%s\n", dlerror());
    MUST(library != NULL && dlsym(library, "cos") != NULL);
    MUST(dlclose(library) == 0);
    MUST(munmap(anonymous, 16 * MIB) == 0);
}

// Threads with stacks of the usual 8 MiB. They allocate after everything is mapped: glibc reserves
// 64 MiB for each thread that meets another in the allocator.
static void use_process(void) {
    pthread_attr_t attributes;
    MUST(pthread_attr_init(&attributes) == 0);
    MUST(pthread_attr_setstacksize(&attributes, 8 * MIB) == 0);
    MUST(pthread_barrier_init(&meeting, NULL, THREADS + 1) == 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], &attributes, allocate_in_thread, NULL) == 0);
    pthread_barrier_wait(&meeting);
    map_things();
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

static void fill(size_t size, size_t least_bytes) {
    struct block *all = NULL, *one;
    size_t bytes = 0;
    errno = 0;
    while ((one = add(all, size)) != NULL) {
        all = one;
        bytes += size;
        MUST(bytes < LIMIT);
    }
    MUST(errno == ENOMEM);
    dprintf(2, "blocks of %zu bytes: %zu KiB\n", size, bytes >> 10);
    MUST(bytes >= least_bytes);
    errno = 0;
    MUST(calloc(1, LIMIT) == NULL && errno == ENOMEM);
    errno = 0;
    MUST(all == NULL || (realloc(all, LIMIT) == NULL && errno == ENOMEM));
    void *place = NULL;
    MUST(posix_memalign(&place, 4096, LIMIT) == ENOMEM && place == NULL);
    drain(all);
}

// Small, medium and large blocks up to the limit; beyond it, none and ENOMEM.
static void fill_all(void) {
    static const size_t sizes[] = {64, 10000, MIB, 64, 3 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        fill(sizes[i], 48 * MIB);
}

int main(int count, char **words) {
    MUST(count > 1);
    struct block *kept = begin();
    limit();
    use_process();
    if (strcmp(words[1], "limit-filled") == 0) {
        fill_all();
    } else if (strcmp(words[1], "limit-returned") == 0) {
        fill_all();
        malloc_trim(0);
        use_process();
    } else if (strcmp(words[1], "limit-set") != 0) {
        return 2;
    }
    drain(kept);
    drain(begin());
    return 0;
}
