/* A forking program: it forks while other threads allocate, and the child goes on to allocate. A
   child whose heap was locked by a thread that it does not have hangs. */

#include "basic.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#define THREADS 3
#define FORKS 300
/* Copying the page tables of an allocator that reserves much takes long, and is not a fault. */
#define SECONDS 2

static volatile int stop;

static void *allocate_on(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument + 1;
    void *live[64] = { NULL };
    while (!stop) {
        size_t slot = next_number(&state) % 64;
        free(live[slot]);
        live[slot] = malloc(some_size(&state));
        REQUIRE(live[slot] != NULL, "no memory in a thread");
    }
    for (int i = 0; i < 64; i++) free(live[i]);
    return NULL;
}

static void child(void *of_parent)
{
    uint64_t state = 42;
    void *live[200];
    free(of_parent);
    for (int i = 0; i < 200; i++) {
        size_t size = some_size(&state);
        live[i] = malloc(size);
        if (live[i] == NULL) _exit(1);
        memset(live[i], i, size);
    }
    for (int i = 0; i < 200; i++) free(live[i]);
    _exit(0);
}

int main(void)
{
    pthread_t threads[THREADS];
    require_allocator();
    for (uintptr_t i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, allocate_on, (void *)i) == 0,
                "no thread could be made");
    time_t end = time(NULL) + SECONDS;
    for (int i = 0; i < FORKS && time(NULL) <= end; i++) {
        int status;
        void *memory = malloc(100);
        pid_t pid = fork();
        REQUIRE(pid >= 0, "fork failed");
        if (pid == 0) child(memory);
        REQUIRE(waitpid(pid, &status, 0) == pid, "the child was lost");
        REQUIRE(!WIFSIGNALED(status), "child %d was killed by signal %d", i, WTERMSIG(status));
        REQUIRE(WEXITSTATUS(status) == 0, "child %d found no memory", i);
        free(memory);
    }
    stop = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
