// Forks beside stdio and other parts of the C library that allocate under locks of their own.
//
// glibc's fork runs the handlers of pthread_atfork first, and takes the lock of its list of streams
// afterwards. An allocator whose handler takes locks can deadlock there. A thread in getline holds
// its stream and waits for the allocator. A thread in fflush(NULL) holds the list and waits for
// that stream. The forking thread holds the allocator and waits for the list.
#define _GNU_SOURCE
#include "storm.h"
#include <dlfcn.h>
#include <netdb.h>
#include <pwd.h>
#include <sys/socket.h>

static void memory_stream_turn(struct worker *me) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    MUST(stream != NULL);
    int rows = 1 + (int)(next_random(me) % 300);
    for (int row = 0; row < rows; row++)
        MUST(fprintf(stream, "%0100d", row) == 100);
    MUST(fclose(stream) == 0);
    MUST(size == (size_t)rows * 100 && text[size] == 0 && text[size - 100] == '0');
    free(text);
}

static void open_turn(struct worker *me) {
    (void)me;
    FILE *file = fopen(path, "r");
    MUST(file != NULL);
    char text[100];
    MUST(fread(text, 1, sizeof text, file) == sizeof text);
    MUST(text[99] == line_byte(0, 99));
    MUST(fclose(file) == 0);
}

static void load_turn(struct worker *me) {
    static const char *const names[] = {"libm.so.6", "libresolv.so.2", "libstdc++.so.6"};
    void *handle = dlopen(names[next_random(me) % 3], RTLD_NOW | RTLD_LOCAL);
    MUST(handle != NULL);
    MUST(dlclose(handle) == 0);
    MUST(dlopen("libthere-is-none.so", RTLD_NOW) == NULL && dlerror() != NULL);
}

static void resolve_turn(struct worker *me) {
    struct addrinfo hints = {0}, *found = NULL;
    hints.ai_flags = AI_NUMERICHOST;
    hints.ai_socktype = SOCK_STREAM;
    const char *host = next_random(me) % 2 ? "127.0.0.1" : "::1";
    MUST(getaddrinfo(host, "80", &hints, &found) == 0 && found != NULL);
    freeaddrinfo(found);
    struct passwd user, *is_there = NULL;
    char text[4096];
    getpwuid_r(0, &user, text, sizeof text, &is_there);
}

// tzset reads a file and allocates when TZ has changed. Only this thread reads the value, so it may
// change it in place.
static char zone[] = "TZ=HDA0";

static void clock_turn(struct worker *me) {
    zone[5] = (char)('A' + next_random(me) % 26);
    tzset();
    time_t at = (time_t)next_random(me);
    const struct tm *local = localtime(&at);
    MUST(local != NULL && local->tm_zone[2] == zone[5]);
}

static void large_turn(struct worker *me) {
    size_t size = (128 << 10) + next_random(me) % (2 << 20);
    struct block *block = new_block(size, me->random);
    for (int i = 0; i < 3; i++) {
        size_t before = block->size, after = (128 << 10) + next_random(me) % (3 << 20);
        block = (struct block *)realloc(block, after);
        MUST(block != NULL && block->size == before);
        check_block(block, before < after ? before : after);
        block->size = after;
        memset(block->bytes, block->fill, payload(block));
    }
    free_block(block);
}

static void *short_life(void *argument) {
    struct worker *me = (struct worker *)argument;
    exchange_turn(me);
    return NULL;
}

static void thread_turn(struct worker *me) {
    pthread_t threads[4];
    struct worker likes[4];
    for (int i = 0; i < 4; i++) {
        likes[i] = *me;
        likes[i].random = next_random(me);
        MUST(pthread_create(&threads[i], NULL, short_life, &likes[i]) == 0);
    }
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

static void inform_turn(struct worker *me) {
    (void)me;
    // The result is ignored: an allocator may leave these functions to the C library.
    malloc_trim(0);
    mallinfo2();
    pause_us(20000);
}

// An allocator walks through its structures for this, and a fork may wait for the end of the walk.
static void trim_turn(struct worker *me) {
    struct block *block = new_block(1 + next_random(me) % 5000, me->random);
    malloc_trim(0);
    free_block(block);
}

int main(void) {
    static const struct kind kinds[] = {
        {"line reader", read_turn, 8},
        {"flusher", flush_turn, 1},
        {"writer of memory streams", memory_stream_turn, 1},
        {"opener of files", open_turn, 1},
        {"loader of libraries", load_turn, 1},
        {"resolver of addresses", resolve_turn, 1},
        {"reader of time zones", clock_turn, 1},
        {"user of large blocks", large_turn, 2},
        {"exchanger of blocks", exchange_turn, 2},
        {"starter of threads", thread_turn, 1},
        {"asker for information", inform_turn, 1},
        {"trimmer", trim_turn, 2},
        {"forker", fork_turn, 4},
    };
    MUST(putenv(zone) == 0);
    write_lines();
    storm(kinds, sizeof kinds / sizeof *kinds, 5);
    return 0;
}
