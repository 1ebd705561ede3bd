// Signals that interrupt threads within the allocator: each wait of theirs must continue.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "must.h"

enum { THREADS = 4, STEPS = 400000 };
static atomic_int handled, busy = THREADS;
static unsigned char *_Atomic shared[64];

static void handle(int number) { atomic_fetch_add(&handled, number != 0); }

// Threads free one another's blocks, so that they wait for one another.
static void *churn(void *seed) {
    unsigned state = (unsigned)(long)seed;
    for (int i = 0; i < STEPS; i++) {
        state = state * 1103515245 + 12345;
        size_t size = (state >> 8) % 500 ? (state >> 12) % 3000 + 1 : (state >> 12) % 600000 + 1;
        unsigned char *block = malloc(size);
        MUST(block != NULL);
        block[0] = block[size - 1] = 42;
        block = atomic_exchange(&shared[(state >> 20) % 64], block);
        MUST(block == NULL || block[0] == 42);
        free(block);
    }
    atomic_fetch_sub(&busy, 1);
    return NULL;
}

int main(void) {
    // Without SA_RESTART: system calls that sleep return early.
    struct sigaction action = {.sa_handler = handle};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
    while (atomic_load(&busy) != 0) {
        for (int i = 0; i < THREADS; i++)
            pthread_kill(threads[i], SIGUSR1);
        usleep(200);
    }
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    MUST(atomic_load(&handled) != 0);
    return 0;
}
