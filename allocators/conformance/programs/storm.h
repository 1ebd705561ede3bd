// Threads of several kinds that run concurrently, threads that fork meanwhile, and a watchdog.
//
// Each thread repeats a turn and counts its turns. The watchdog is the main thread. If a thread has
// ended no turn for `stall` seconds, the watchdog reports every thread that has ended none for half
// of that time, and exits with status 3. Status 1 means wrong contents or a failed call. SIGALRM
// kills a child that hangs, and its parent reports that.
//
// HEAPDROME_SECONDS sets the duration; HEAPDROME_STALL_SECONDS sets the watchdog's limit.
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Writes a line without stdio's streams: even dprintf waits for the lock of their list.
__attribute__((format(printf, 1, 2))) static void report(const char *format, ...) {
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (write(2, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1) < 0)
        _exit(1);
}

// A failed condition ends the process without exit handlers: those could wait for a hung thread.
#define MUST(condition)                                                          \
    do {                                                                         \
        if (!(condition)) {                                                      \
            report("line %d: not so: %s\n", __LINE__, #condition);               \
            _exit(1);                                                            \
        }                                                                        \
    } while (0)

struct worker;

// Kind of thread: its name, its turn, and the number of threads that repeat the turn.
struct kind {
    const char *name;
    void (*turn)(struct worker *);
    int threads;
};

struct worker {
    const struct kind *kind;
    int number;
    unsigned random;
    void *own; // for the turn's use
    pthread_t thread;
    unsigned long turns;
    int finished;
    // Fields of the watchdog.
    unsigned long seen;
    time_t seen_at;
};

enum { WORKERS = 64 };
static struct worker workers[WORKERS];
static int worker_count;
static int go, stop;
static long stall = 20;

static unsigned next_random(struct worker *me) {
    me->random = me->random * 1103515245 + 12345;
    return me->random >> 8;
}

static time_t now(void) {
    struct timespec time;
    MUST(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return time.tv_sec;
}

static void pause_us(long microseconds) {
    struct timespec time = {0, microseconds * 1000};
    nanosleep(&time, NULL);
}

// Block that can be recognised: it begins with its size, and all other bytes are equal.
struct block {
    size_t size;
    unsigned char fill;
    unsigned char bytes[];
};

static size_t payload(const struct block *block) {
    return block->size - sizeof(struct block);
}

static struct block *new_block(size_t size, unsigned fill) {
    size += sizeof(struct block);
    struct block *block = (struct block *)malloc(size);
    MUST(block != NULL);
    block->size = size;
    block->fill = (unsigned char)fill;
    memset(block->bytes, block->fill, payload(block));
    return block;
}

static void check_block(const struct block *block, size_t size) {
    MUST(malloc_usable_size((void *)block) >= size);
    size -= sizeof(struct block);
    for (size_t at = 0; at < size; at += at < 256 ? 1 : 61)
        MUST(block->bytes[at] == block->fill);
    MUST(size == 0 || block->bytes[size - 1] == block->fill);
}

static void free_block(struct block *block) {
    if (block == NULL)
        return;
    check_block(block, block->size);
    block->size = 0;
    free(block);
}

// Blocks that one thread passes to another.
enum { PLACES = 256 };
static struct block *places[PLACES];

static struct block *exchange(unsigned place, struct block *block) {
    return __atomic_exchange_n(&places[place % PLACES], block, __ATOMIC_ACQ_REL);
}

// File of long lines, which threads read.
enum { LINE = 60000, LINES = 8 };
static char path[64];

static char line_byte(int line, size_t at) {
    return (char)('a' + (line * 7 + (int)(at % 19)) % 26);
}

static void write_lines(void) {
    static char text[LINE];
    int file = memfd_create("lines", 0);
    MUST(file >= 0);
    for (int line = 0; line < LINES; line++) {
        for (size_t at = 0; at < LINE - 1; at++)
            text[at] = line_byte(line, at);
        text[LINE - 1] = '\n';
        MUST(write(file, text, LINE) == LINE);
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
}

// The locks of streams are not fair: without the pauses, readers would keep all others waiting.
static void read_turn(struct worker *me) {
    FILE *file = (FILE *)me->own;
    if (file == NULL)
        me->own = file = fopen(path, "r");
    MUST(file != NULL);
    rewind(file);
    for (int line = 0; line < LINES; line++) {
        char *text = NULL;
        size_t room = 0;
        MUST(getline(&text, &room, file) == LINE);
        for (size_t at = 0; at < LINE - 1; at += 97)
            MUST(text[at] == line_byte(line, at));
        MUST(text[LINE - 1] == '\n' && text[LINE] == 0);
        free(text);
        pause_us(200);
    }
}

static void flush_turn(struct worker *me) {
    (void)me;
    MUST(fflush(NULL) == 0);
    pause_us(1000);
}

static size_t some_size(unsigned random) {
    return random % 50 ? random % 3000 : random % 600000;
}

// Allocates, and frees what another thread has allocated.
static void exchange_turn(struct worker *me) {
    for (int i = 0; i < 50; i++) {
        unsigned random = next_random(me);
        free_block(exchange(random >> 4, new_block(some_size(next_random(me)), random)));
    }
}

static void *child_thread(void *unused) {
    for (unsigned i = 0; i < 300; i++)
        free_block(new_block(i * 7, i));
    return unused;
}

static void child_begins(void) {
    // The parent reports this signal: a child that is not done by then hangs.
    alarm((unsigned)(stall * 3 / 4));
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void await(pid_t pid, const char *who) {
    int status;
    MUST(waitpid(pid, &status, 0) == pid);
    if (status == 0)
        return;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        report("hang: a %s has not ended in %ld s\n", who, stall * 3 / 4);
        _exit(3);
    }
    report("a %s ended with wait status %#x\n", who, (unsigned)status);
    _exit(1);
}

// Does everything that glibc's malloc allows in the child of a process with threads.
static void child(struct block **held, int count, unsigned random) {
    child_begins();
    for (int i = 0; i < count / 2; i++)
        free_block(held[i]);
    enum { BLOCKS = 300 };
    struct block *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = new_block(i % 40 * 100, i + random);
    for (int i = 0; i < BLOCKS; i++)
        free_block(blocks[i]);
    free_block(new_block(3000000, random));
    pthread_attr_t attributes;
    MUST(pthread_attr_init(&attributes) == 0);
    MUST(pthread_attr_setstacksize(&attributes, 256 << 10) == 0);
    pthread_t thread;
    MUST(pthread_create(&thread, &attributes, child_thread, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    pid_t grandchild = fork();
    MUST(grandchild >= 0);
    if (grandchild == 0) {
        child_begins();
        for (int i = count / 2; i < count; i++)
            free_block(held[i]);
        free_block(new_block(some_size(random), random));
        _exit(0);
    }
    await(grandchild, "child of a child");
    _exit(0);
}

// The forking thread owns the blocks that its child frees. Fork does not copy all pages at the same
// moment, so a block that another thread frees meanwhile may be both live and free in the child.
static void fork_turn(struct worker *me) {
    enum { HELD = 32 };
    struct block *held[HELD];
    for (int i = 0; i < HELD; i++) {
        held[i] = exchange(next_random(me), NULL);
        if (held[i] == NULL)
            held[i] = new_block(some_size(next_random(me)), (unsigned)i);
    }
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0)
        child(held, HELD, me->random);
    await(pid, "child");
    for (int i = 0; i < HELD; i++)
        free_block(held[i]);
}

static void *work(void *argument) {
    struct worker *me = (struct worker *)argument;
    while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
        pause_us(1000);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        me->kind->turn(me);
        __atomic_fetch_add(&me->turns, 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&me->finished, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void start(const struct kind *kind) {
    for (int number = 1; number <= kind->threads; number++) {
        struct worker *worker = &workers[worker_count++];
        MUST(worker_count <= WORKERS);
        worker->kind = kind;
        worker->number = number;
        worker->random = (unsigned)worker_count * 2654435761u;
        worker->seen_at = now();
        MUST(pthread_create(&worker->thread, NULL, work, worker) == 0);
    }
}

// Reports every thread that has ended no turn for half of the limit, and ends the process.
static void report_hang(void) {
    for (int i = 0; i < worker_count; i++) {
        const struct worker *worker = &workers[i];
        long idle = now() - worker->seen_at;
        if (idle >= stall / 2 && !worker->finished)
            report("hang: %s %d of %d has ended no turn in %ld s, after %lu turns\n",
                   worker->kind->name, worker->number, worker->kind->threads, idle, worker->seen);
    }
    _exit(3);
}

// Checks every thread; returns the number of those that have not ended.
static int watch(void) {
    int running = 0, hung = 0;
    for (int i = 0; i < worker_count; i++) {
        struct worker *worker = &workers[i];
        unsigned long turns = __atomic_load_n(&worker->turns, __ATOMIC_RELAXED);
        if (__atomic_load_n(&worker->finished, __ATOMIC_ACQUIRE))
            continue;
        running++;
        if (turns != worker->seen) {
            worker->seen = turns;
            worker->seen_at = now();
        }
        hung += now() - worker->seen_at >= stall;
    }
    if (hung > 0)
        report_hang();
    return running;
}

static void report_turns(const struct kind *kinds, int count) {
    for (int i = 0; i < count; i++) {
        unsigned long turns = 0;
        for (int j = 0; j < worker_count; j++)
            turns += workers[j].kind == &kinds[i] ? workers[j].turns : 0;
        report("%s: %lu turns\n", kinds[i].name, turns);
    }
}

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text != NULL && atol(text) > 0 ? atol(text) : otherwise;
}

// Runs threads of all kinds for the configured number of seconds.
static void storm(const struct kind *kinds, int count, long seconds) {
    seconds = setting("HEAPDROME_SECONDS", seconds);
    stall = setting("HEAPDROME_STALL_SECONDS", stall);
    time_t end = now() + seconds;
    for (int i = 0; i < count; i++)
        start(&kinds[i]);
    // No turn begins before all threads run: a hang must not stop this thread, which watches.
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    while (now() < end) {
        watch();
        pause_us(100000);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    while (watch() > 0)
        pause_us(10000);
    for (int i = 0; i < worker_count; i++)
        MUST(pthread_join(workers[i].thread, NULL) == 0);
    for (unsigned i = 0; i < PLACES; i++)
        free_block(exchange(i, NULL));
    report_turns(kinds, count);
}
