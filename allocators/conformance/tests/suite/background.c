// The allocator's own thread, which returns memory while all others are idle. The tests set
// ELFMALLOC_BACKGROUND_PURGE and the decay time.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../programs/must.h"

enum { BLOCKS = 64 << 10, SIZE = 1000, LEFT = 16 << 10, PATIENCE = 100 };

static char *blocks[BLOCKS];

// Reads a number from a file of the kernel, without calling the allocator.
static long number(const char *file, const char *name) {
    static char text[8192];
    int from = open(file, O_RDONLY);
    MUST(from >= 0);
    ssize_t length = read(from, text, sizeof text - 1);
    close(from);
    MUST(length > 0);
    text[length] = 0;
    char *at = strstr(text, name);
    MUST(at != NULL);
    return atol(at + strlen(name));
}

static long threads(void) {
    return number("/proc/self/status", "Threads:");
}

static long resident_kib(void) {
    return number("/proc/self/smaps_rollup", "Rss:");
}

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

// Freed memory goes back although no thread calls the allocator any longer.
static void burst_and_silence(void) {
    long before = resident_kib();
    for (int i = 0; i < BLOCKS; i++) {
        MUST((blocks[i] = malloc(SIZE)) != NULL);
        memset(blocks[i], 1, SIZE);
    }
    MUST(threads() == 2);
    MUST(resident_kib() > before + BLOCKS / 1024 * SIZE / 2);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    for (int i = 0; i < PATIENCE * 100 && resident_kib() > before + LEFT; i++)
        nap();
    MUST(resident_kib() <= before + LEFT);
    MUST(threads() == 2);
}

static void *last(void *unused) {
    // The main thread has ended: this one and the allocator's own one are left.
    for (int i = 0; i < 20; i++) {
        free(malloc(SIZE));
        nap();
    }
    return unused;
}

int main(int count, char **words) {
    MUST(count == 2);
    alarm(3 * PATIENCE);
    if (strcmp(words[1], "fork") == 0) {
        burst_and_silence();
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            alarm(2 * PATIENCE);
            burst_and_silence();
            _exit(0);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && status == 0);
        return 0;
    }
    if (strcmp(words[1], "end") == 0) {
        alarm(PATIENCE);
        free(malloc(SIZE));
        MUST(threads() == 2);
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, last, NULL) == 0);
        // The process ends once all threads have ended. So the allocator's own one must end too,
        // however long it sleeps.
        pthread_exit(NULL);
    }
    return 2;
}
