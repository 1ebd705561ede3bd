// Libraries that are loaded and closed. With "loaded-late", argv[2] is the allocator; without it,
// the process's own allocator serves.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

static void *(*allocate)(size_t);
static void (*release)(void *);

static void *use(void *unused) {
    char *blocks[500];
    for (int i = 0; i < 500; i++) {
        blocks[i] = allocate((size_t)i * 11 + 1);
        MUST(blocks[i] != NULL);
        memset(blocks[i], i, (size_t)i * 11 + 1);
    }
    for (int i = 0; i < 500; i++) {
        MUST(blocks[i][i * 11] == (char)i);
        release(blocks[i]);
    }
    return unused;
}

static pthread_barrier_t barrier;

static void *use_around_close(void *unused) {
    use(NULL);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

// A thread that used the library ends after it was closed.
static void loaded_late(const char *library) {
    for (int round = 0; round < 3; round++) {
        void *handle = library ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : RTLD_DEFAULT;
        if (handle == NULL && library != NULL) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        *(void **)&allocate = dlsym(handle, "malloc");
        *(void **)&release = dlsym(handle, "free");
        MUST(allocate != NULL && release != NULL);
        use(NULL);
        char *outlives = allocate(100);
        strcpy(outlives, "outlives");
        pthread_t thread;
        pthread_barrier_init(&barrier, NULL, 2);
        MUST(pthread_create(&thread, NULL, use_around_close, NULL) == 0);
        pthread_barrier_wait(&barrier);
        if (library)
            MUST(dlclose(handle) == 0);
        pthread_barrier_wait(&barrier);
        MUST(pthread_join(thread, NULL) == 0);
        MUST(strcmp(outlives, "outlives") == 0);
    }
}

// Other libraries are loaded and closed while threads allocate.
static void *churn(void *unused) {
    for (int i = 0; i < 100; i++)
        use(NULL);
    return unused;
}

static void loads_others(void) {
    allocate = malloc;
    release = free;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        MUST(pthread_create(&threads[i], NULL, churn, NULL) == 0);
    for (int round = 0; round < 50; round++) {
        void *handle = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        MUST(handle != NULL && dlsym(handle, "cos") != NULL);
        void *cxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
        MUST(cxx != NULL);
        MUST(dlclose(cxx) == 0 && dlclose(handle) == 0);
        MUST(dlopen("libthere-is-none.so", RTLD_NOW) == NULL && dlerror() != NULL);
    }
    for (int i = 0; i < 3; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

int main(int count, char **words) {
    MUST(count > 1);
    if (strcmp(words[1], "loaded-late") == 0)
        loaded_late(count > 2 ? words[2] : NULL);
    else if (strcmp(words[1], "loads-others") == 0)
        loads_others();
    else
        return 2;
    return 0;
}
