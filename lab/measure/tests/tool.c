/* Program of the measurer's tests; WORD selects its action: tool WORD [MEGABYTES] [FILE]. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Touches anonymous memory and holds it long enough to be seen. */
static void touch(size_t megabytes, unsigned milliseconds) {
    char *memory = mmap(NULL, megabytes << 20, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(9);
    memset(memory, 1, megabytes << 20);
    usleep(milliseconds * 1000);
}

/* Touches memory, releases most of it, and idles long enough to be observed. */
static void rest(size_t megabytes) {
    char *memory = mmap(NULL, megabytes << 20, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(9);
    memset(memory, 1, megabytes << 20);
    usleep(1500000);
    munmap(memory, (megabytes << 20) / 4 * 3);
    usleep(4000000);
}

/* Touches memory and releases half of it lazily, with MADV_FREE. */
static void free_lazily(size_t megabytes) {
    char *memory = mmap(NULL, megabytes << 20, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(9);
    memset(memory, 1, megabytes << 20);
    if (madvise(memory, (megabytes << 20) / 2, MADV_FREE) != 0) exit(8);
    usleep(4000000);
}

/* Touches memory, signals this by creating a file, and holds the memory until killed. */
static void hold(size_t megabytes, const char *path) {
    touch(megabytes, 0);
    if (close(open(path, O_CREAT | O_WRONLY, 0600)) != 0) exit(8);
    for (;;) pause();
}

static void read_file(const char *path) {
    static char buffer[1 << 16];
    int file = open(path, O_RDONLY);
    if (file < 0) exit(8);
    while (read(file, buffer, sizeof buffer) > 0) {}
    usleep(150000);
}

/* Starts three children that touch their own memory at the same time. */
static void fork_three(size_t megabytes) {
    for (int child = 0; child < 3; child++)
        if (fork() == 0) { touch(megabytes, 3000); _exit(0); }
    while (wait(NULL) > 0) {}
}

/* Starts a grandchild in its own session that outlives its parent. */
static void detach(void) {
    if (fork() == 0) {
        setsid();
        if (fork() == 0) for (;;) pause();
        _exit(0);
    }
    wait(NULL);
}

/* Runs a program as on a kernel without pidfd_open. */
static void without_pidfd(char **words) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 434 /* on every architecture */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { sizeof lines / sizeof *lines, lines };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) exit(8);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) exit(8);
    execv(words[0], words);
    exit(8);
}

int main(int count, char **words) {
    size_t megabytes = count > 2 ? strtoul(words[2], NULL, 10) : 0;
    if (count < 2) return 7;
    if (!strcmp(words[1], "touch")) touch(megabytes, 600);
    else if (!strcmp(words[1], "rest")) rest(megabytes);
    else if (!strcmp(words[1], "free-lazily")) free_lazily(megabytes);
    else if (!strcmp(words[1], "read")) read_file(words[3]);
    else if (!strcmp(words[1], "hold")) hold(megabytes, words[3]);
    else if (!strcmp(words[1], "fork")) fork_three(megabytes);
    else if (!strcmp(words[1], "detach")) detach();
    else if (!strcmp(words[1], "without-pidfd")) without_pidfd(words + 2);
    else if (!strcmp(words[1], "crash")) { fputs("about to crash\n", stderr); abort(); }
    else return 7;
    return 0;
}
