/* Allocates on the small stack of a signal handler, in a thread that has not allocated before.
   Prints the number of bytes of the stack that were used. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 64 << 10, UNUSED = 0xa5, BLOCKS = 64 };

static unsigned char stack[SIZE] __attribute__((aligned(64)));

static void work(int signal) {
    for (int round = 0; round < 20; round++) {
        void *blocks[BLOCKS];
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = malloc(i * i * 37 + 1);
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = realloc(blocks[i], i * 97 + 5);
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
        free(aligned_alloc(4096, 300000));
        malloc_trim(0);
    }
}

static void *run(void *unused) {
    memset(stack, UNUSED, SIZE);
    stack_t other = {.ss_sp = stack, .ss_size = SIZE};
    struct sigaction action = {.sa_handler = work, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&other, NULL) || sigaction(SIGUSR1, &action, NULL))
        abort();
    raise(SIGUSR1);
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) || pthread_join(thread, NULL))
        return 1;
    size_t unused = 0;
    while (unused < SIZE && stack[unused] == UNUSED)
        unused++;
    printf("%zu\n", SIZE - unused);
    return 0;
}
