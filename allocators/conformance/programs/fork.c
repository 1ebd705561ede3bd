// Forks of a program whose other threads constantly allocate.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "must.h"

static atomic_int stop;
static void *_Atomic shared[64];

static void *busy(void *seed) {
    unsigned state = (unsigned)(long)seed;
    while (!atomic_load(&stop)) {
        state = state * 1103515245 + 12345;
        size_t size = (state >> 8) % 100 ? (state >> 12) % 3000 + 1 : (state >> 12) % 600000 + 1;
        char *block = malloc(size);
        MUST(block != NULL);
        block[0] = block[size - 1] = 1;
        free(atomic_exchange(&shared[(state >> 20) % 64], block));
    }
    return NULL;
}

static void *few(void *unused) {
    for (int i = 0; i < 1000; i++)
        free(malloc((size_t)i * 7));
    return unused;
}

// In the child, blocks of threads that it does not have, and new threads, must work.
static void child(void) {
    alarm(10);
    for (int i = 0; i < 64; i++)
        free(atomic_exchange(&shared[i], NULL));
    char *blocks[2000];
    for (int i = 0; i < 2000; i++) {
        blocks[i] = malloc((size_t)(i % 40) * 100 + 1);
        MUST(blocks[i] != NULL);
        blocks[i][0] = (char)i;
    }
    for (int i = 0; i < 2000; i++) {
        MUST(blocks[i][0] == (char)i);
        free(blocks[i]);
    }
    free(malloc(3000000));
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, few, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    pid_t grandchild = fork();
    MUST(grandchild >= 0);
    if (grandchild == 0) {
        free(malloc(1000));
        _exit(0);
    }
    int status;
    MUST(waitpid(grandchild, &status, 0) == grandchild && status == 0);
    _exit(0);
}

static void storm(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], NULL, busy, (void *)(i + 1)) == 0);
    for (int round = 0; round < 60; round++) {
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0)
            child();
        int status;
        MUST(waitpid(pid, &status, 0) == pid);
        MUST(status == 0);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

// Fork handlers of a program that were registered before or after the allocator's, and allocate.
static void handler(void) {
    for (size_t size = 1; size < 2000000; size *= 2) {
        void *block = malloc(size);
        MUST(block != NULL);
        memset(block, 1, size < 100 ? size : 100);
        free(block);
    }
}

// Fork handlers that were registered before any constructor ran, like those of a library that the
// program needs come before those of a preloaded one. They wait for a lock under which another
// thread allocates.
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

static void hold(void) { MUST(pthread_mutex_lock(&own) == 0); }
static void release(void) { MUST(pthread_mutex_unlock(&own) == 0); }

static void register_early(int count, char **words, char **environment) {
    (void)environment;
    if (count > 1 && strcmp(words[1], "fork-locked") == 0) {
        free(malloc(1));
        MUST(pthread_atfork(hold, release, release) == 0);
    }
}

__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char **, char **) =
    register_early;

static void *busy_with_lock(void *unused) {
    // Large blocks come from the back-end, whose locks the forking thread may hold.
    for (size_t turn = 0; !atomic_load(&stop); turn++) {
        hold();
        free(malloc(200000 + turn % 100000));
        release();
    }
    return unused;
}

int main(int count, char **words) {
    MUST(count > 1);
    alarm(120);
    if (strcmp(words[1], "fork-handlers") == 0)
        MUST(pthread_atfork(handler, handler, handler) == 0);
    pthread_t thread;
    int locked = strcmp(words[1], "fork-locked") == 0;
    if (locked)
        MUST(pthread_create(&thread, NULL, busy_with_lock, NULL) == 0);
    storm();
    if (locked)
        MUST(pthread_join(thread, NULL) == 0);
    return 0;
}
