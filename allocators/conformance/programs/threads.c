// Threads that start and end.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

static long resident_kib(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long size, resident;
    MUST(file != NULL && fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident * 4;
}

static void *few(void *unused) {
    void *blocks[50];
    for (int i = 0; i < 50; i++) {
        blocks[i] = malloc((size_t)i * 37 + 1);
        MUST(blocks[i] != NULL);
        memset(blocks[i], i, (size_t)i * 37 + 1);
    }
    for (int i = 0; i < 50; i++)
        free(blocks[i]);
    return unused;
}

// A thread's leftovers must serve the next: ten thousand in a row hold no more than a few.
static void many_threads(void) {
    long before = 0;
    for (int round = 0; round < 2500; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            MUST(pthread_create(&threads[i], NULL, few, NULL) == 0);
        for (int i = 0; i < 4; i++)
            MUST(pthread_join(threads[i], NULL) == 0);
        if (round == 250)
            before = resident_kib();
    }
    MUST(resident_kib() - before < 20000);
}

enum { SILENT = 16 };
static pthread_barrier_t meeting;

static void *be_silent(void *unused) {
    pthread_barrier_wait(&meeting);
    return unused;
}

// Threads that never allocate: when one ends, the C library may free for it, after the destructors
// of its keys. It does so if its cache of stacks is full: of stacks of 8 MiB it caches five.
static void silent_threads(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    MUST(pthread_attr_setstacksize(&attributes, 8 << 20) == 0);
    MUST(pthread_barrier_init(&meeting, NULL, SILENT + 1) == 0);
    long before = 0;
    for (int round = 0; round < 500; round++) {
        for (int i = 0; i < SILENT; i++) {
            pthread_t thread;
            MUST(pthread_create(&thread, &attributes, be_silent, NULL) == 0);
        }
        pthread_barrier_wait(&meeting);
        if (round == 50)
            before = resident_kib();
    }
    MUST(resident_kib() - before < 10000);
}

enum { BLOCKS = 20000 };
static unsigned char *left[4][BLOCKS];

static void *leave(void *number) {
    long me = (long)number;
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = (size_t)(i % 300 + 8);
        left[me][i] = malloc(size);
        MUST(left[me][i] != NULL);
        memset(left[me][i], (int)(i + me), size);
    }
    return NULL;
}

static void *take(void *number) {
    long me = ((long)number + 1) % 4;
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = (size_t)(i % 300 + 8);
        for (size_t at = 0; at < size; at++)
            MUST(left[me][i][at] == (unsigned char)(i + me));
        if (i % 3 == 0)
            left[me][i] = realloc(left[me][i], size * 2);
        free(left[me][i]);
    }
    return NULL;
}

static void each(void *(*body)(void *)) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

// Blocks outlive the threads that allocated them, and other threads free them. Their memory is used
// again.
static void outliving_blocks(void) {
    long before = 0;
    for (int round = 0; round < 40; round++) {
        each(leave);
        each(take);
        if (round == 10)
            before = resident_kib();
    }
    MUST(resident_kib() - before < 40000);
}

enum { KEYS = 60 };
static pthread_key_t keys[KEYS];
static atomic_int destroyed;

static void destroy(void *value) {
    MUST(((char *)value)[99] == 42);
    free(value);
    void *more = malloc(5000);
    MUST(more != NULL);
    memset(more, 1, 5000);
    free(more);
    atomic_fetch_add(&destroyed, 1);
}

static void *with_keys(void *unused) {
    for (int i = 0; i < KEYS; i++) {
        char *value = malloc(100);
        MUST(value != NULL);
        value[99] = 42;
        MUST(pthread_setspecific(keys[i], value) == 0);
    }
    return unused;
}

static void key_destructors(void) {
    for (int i = 0; i < KEYS; i++)
        MUST(pthread_key_create(&keys[i], destroy) == 0);
    for (int round = 0; round < 100; round++)
        each(with_keys);
    MUST(atomic_load(&destroyed) == 100 * 4 * KEYS);
}

static void large_block(size_t mebibytes) {
    void *block = malloc(mebibytes << 20);
    MUST(block != NULL);
    free(block);
}

// With little address space everything must start and work, with a few threads. glibc reserves 64
// MiB for each thread that meets another in the allocator, so less than that may be left after
// them.
static void start_in_little(void) {
    large_block(64);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    pthread_t threads[8];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 8; i++)
            MUST(pthread_create(&threads[i], &attributes, few, NULL) == 0);
        for (int i = 0; i < 8; i++)
            MUST(pthread_join(threads[i], NULL) == 0);
    }
    large_block(16);
}

int main(int count, char **words) {
    MUST(count > 1);
    if (strcmp(words[1], "many-threads") == 0)
        many_threads();
    else if (strcmp(words[1], "silent-threads") == 0)
        silent_threads();
    else if (strcmp(words[1], "outliving-blocks") == 0)
        outliving_blocks();
    else if (strcmp(words[1], "key-destructors") == 0)
        key_destructors();
    else if (strcmp(words[1], "start-in-little") == 0 || strcmp(words[1], "committed-start") == 0)
        start_in_little();
    else
        return 2;
    return 0;
}
