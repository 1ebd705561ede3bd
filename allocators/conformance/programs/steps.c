// Calls an allocating and a freeing function repeatedly. The first calls warm up. A tracer follows
// each instruction of the others. Prints the functions' addresses, and stops before and after the
// calls that are followed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <unistd.h>

enum { SIZE = 64, WARM = 1000, FOLLOWED = 64, NO_FUNCTION = 3, FORBIDDEN = 4 };

static void call(int times, void *(*give)(size_t), void (*take)(void *)) {
    for (int i = 0; i < times; i++)
        take(give(SIZE));
}

int main(int count, char **words) {
    if (count != 3)
        return 2;
    void *(*give)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, words[1]);
    void (*take)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, words[2]);
    if (give == NULL || take == NULL)
        return NO_FUNCTION;
    alarm(300);
    call(WARM, give, take);
    dprintf(1, "%lu %lu\n", (unsigned long)give, (unsigned long)take);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        return FORBIDDEN;
    raise(SIGSTOP);
    call(FOLLOWED, give, take);
    raise(SIGSTOP);
    return 0;
}
