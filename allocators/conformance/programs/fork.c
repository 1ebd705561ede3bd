// Forks of a program whose other threads allocate all the time.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MUST(condition)                                                          \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);      \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

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

// Everything must work in the child: blocks of threads that it does not have, and new threads.
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

// Handlers of a program that were registered before or after the allocator's, and allocate.
static void handler(void) {
    for (size_t size = 1; size < 2000000; size *= 2) {
        void *block = malloc(size);
        MUST(block != NULL);
        memset(block, 1, size < 100 ? size : 100);
        free(block);
    }
}

int main(int count, char **words) {
    MUST(count > 1);
    alarm(120);
    if (strcmp(words[1], "fork-handlers") == 0)
        MUST(pthread_atfork(handler, handler, handler) == 0);
    storm();
    return 0;
}
