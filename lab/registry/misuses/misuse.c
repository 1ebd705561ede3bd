/* Commits one kind of misuse, named by the first argument. */

#include "misuse.h"

#include <pthread.h>
#include <sys/mman.h>

enum { SMALL = 100, FULL = 64, MIDDLE = 9000, LARGE = 1 << 20, RUN = 200000, FOREIGN = 1 << 16 };

/* Size of the blocks that the program allocates after the misuse. */
static size_t size = SMALL;

static unsigned char in_the_program[256] __attribute__((aligned(64)));

static unsigned char *block(size_t bytes)
{
    size = bytes;
    unsigned char *made = had(malloc(bytes));
    memset(made, 'a', bytes);
    return made;
}

static unsigned char *aligned(size_t bytes)
{
    void *made = NULL;
    size = bytes;
    if (posix_memalign(&made, 64, bytes) != 0) made = NULL;
    memset(had(made), 'a', bytes);
    return made;
}

/* Returns a block between live ones, provided that the allocator places blocks in order. */
static unsigned char *among(unsigned char *make(size_t), size_t bytes)
{
    unsigned char *middle = NULL;
    for (int i = 0; i < NEIGHBOURS; i++) {
        unsigned char *made = make(bytes);
        if (i == NEIGHBOURS / 2)
            middle = made;
        else
            keep(made, bytes);
    }
    return middle;
}

static void misuse(void) { say("misuse", ""); }

/* Reports the stage `free`, and frees `last`, which is a valid block or NULL. */
static void finish(void *volatile last)
{
    say("free", "");
    free(last);
}

/* Frees a block correctly, which must succeed under every allocator. */
static void free_rightly(void *volatile address)
{
    misuse();
    finish(address);
}

/* Frees an address that is not, or no longer, a valid argument of free. */
static void free_wrongly(void *volatile address)
{
    misuse();
    free(address);
    finish(NULL);
}

static unsigned char *freed(unsigned char *volatile one)
{
    free(one);
    return one;
}

static void interior(unsigned char *volatile one, size_t distance)
{
    misuse();
    free(one + distance);
    finish(one);
}

static void overwrite(unsigned char *volatile one, long distance, size_t length, int value)
{
    for (size_t i = 0; i < length; i++) *(volatile unsigned char *)(one + distance + i) = value;
}

static void write_at(unsigned char *volatile one, long distance, size_t length, int value)
{
    misuse();
    overwrite(one, distance, length, value);
    finish(one);
}

/* Writes the lowest byte last, like a loop that runs backwards. */
static void write_before(unsigned char *volatile one, size_t length)
{
    misuse();
    for (size_t i = 1; i <= length; i++) *(volatile unsigned char *)(one - i) = 'x';
    finish(one);
}

static void read_freed(unsigned char *volatile one, size_t distance)
{
    size_t same = 0;
    misuse();
    for (size_t i = 0; i < 64; i++) same += *(volatile unsigned char *)(one + distance + i) == 'a';
    if (same == 64) harm("what a freed block held could be read");
    finish(NULL);
}

static void write_freed(unsigned char *volatile one, size_t distance)
{
    misuse();
    overwrite(one, distance, 16, 'x');
    finish(NULL);
}

/* Reallocates `address`. `rest` is a block that the program owns throughout. */
static void grow(unsigned char *volatile address, void *volatile rest)
{
    unsigned char *volatile moved = realloc(address, 300);
    if (moved != NULL) memset(moved, 'b', 300);
    finish(moved);
    free(rest);
}

static void resize(unsigned char *volatile address, void *volatile rest)
{
    misuse();
    grow(address, rest);
}

static void resize_overrun(unsigned char *volatile one, size_t bytes, size_t length)
{
    misuse();
    overwrite(one, bytes, length, 'x');
    grow(one, NULL);
}

static void resize_within(unsigned char *one, size_t distance) { resize(one + distance, one); }

static unsigned char *mapping(void)
{
    void *made = mmap(NULL, FOREIGN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return had(made == MAP_FAILED ? NULL : made);
}

static unsigned char *unmapped(void)
{
    unsigned char *made = mapping();
    munmap(made, FOREIGN);
    return made + 4096;
}

static void *free_in_thread(void *one)
{
    free(one);
    return NULL;
}

static unsigned char *freed_by_another(unsigned char *one)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_in_thread, one) != 0) had(NULL);
    pthread_join(thread, NULL);
    return one;
}

static unsigned char *freed_before_another(void)
{
    unsigned char *one = block(SMALL), *volatile other = block(SMALL);
    free(one);
    free(other);
    return one;
}

static unsigned char *freed_long_ago(void)
{
    unsigned char *one = freed(block(SMALL));
    churn(SMALL);
    churn(500);
    return one;
}

/* Returns a freed block whose memory may be in use again, because other blocks of its size were
   allocated. */
static unsigned char *freed_and_reused(void)
{
    unsigned char *one = freed(block(SMALL));
    for (int i = 0; i < NEIGHBOURS; i++) keep(had(malloc(SMALL)), SMALL);
    return one;
}

/* Returns the former address of a block that realloc moved. */
static unsigned char *moved_away(void)
{
    unsigned char *old = among(block, SMALL), *volatile before = old;
    unsigned char *moved = had(realloc(old, MIDDLE));
    if (moved == before) {
        say("cannot", "realloc did not move the block");
        _exit(0);
    }
    keep(moved, MIDDLE);
    return before;
}

static int commit(const char *what, unsigned char *frame, unsigned char *elsewhere)
{
#define IS(name) else if (strcmp(what, name) == 0)
    if (*what == '\0') return 0;

    IS("none") free_rightly(block(SMALL));

    IS("twice") free_wrongly(freed(block(SMALL)));
    IS("twice-between") free_wrongly(freed_before_another());
    IS("twice-later") free_wrongly(freed_long_ago());
    IS("twice-reused") free_wrongly(freed_and_reused());
    IS("twice-thread") free_wrongly(freed_by_another(block(SMALL)));
    IS("twice-middle") free_wrongly(freed(block(MIDDLE)));
    IS("twice-large") free_wrongly(freed(block(LARGE)));
    IS("twice-aligned") free_wrongly(freed(aligned(MIDDLE)));

    IS("interior") interior(block(SMALL), 16);
    IS("interior-odd") interior(block(SMALL), 8);
    IS("interior-middle") interior(block(MIDDLE), 64);
    IS("interior-large") interior(block(LARGE), 4096);
    IS("interior-aligned") interior(aligned(MIDDLE), 64);
    IS("stack") free_wrongly(frame + 64);
    IS("static") free_wrongly(in_the_program + 64);
    IS("mapping") free_wrongly(elsewhere + 4096);
    IS("unmapped") free_wrongly(unmapped());

    IS("over-one") write_at(among(block, SMALL), SMALL, 1, 'x');
    IS("over-full") write_at(among(block, FULL), FULL, 1, 'x');
    IS("over-zero") write_at(among(block, FULL), FULL, 1, 0);
    IS("over-many") write_at(among(block, FULL), FULL, FULL, 'x');
    IS("over-beyond") write_at(among(block, FULL), 2 * FULL, 1, 'x');
    IS("over-middle") write_at(among(block, MIDDLE), MIDDLE, 20, 'x');
    IS("over-aligned") write_at(among(aligned, SMALL), SMALL, 1, 'x');
    IS("over-large") write_at(block(RUN), RUN, 1, 'x');
    IS("over-large-many") write_at(block(RUN), RUN, 8192, 'x');
    IS("under-one") write_before(among(block, FULL), 1);
    IS("under-many") write_before(among(block, FULL), 16);
    IS("under-large") write_before(block(RUN), 1);
    IS("under-large-many") write_before(block(RUN), 8192);

    IS("read") read_freed(freed(block(SMALL)), 32);
    IS("read-middle") read_freed(freed(block(MIDDLE)), 32);
    IS("read-inside") read_freed(freed(block(MIDDLE)), MIDDLE / 2);
    IS("read-large") read_freed(freed(block(LARGE)), 32);
    IS("read-aligned") read_freed(freed(aligned(SMALL)), 32);
    IS("read-moved") read_freed(moved_away(), 32);
    IS("write") write_freed(freed(block(SMALL)), 0);
    IS("write-inside") write_freed(freed(block(MIDDLE)), MIDDLE / 2);
    IS("write-large") write_freed(freed(block(LARGE)), LARGE / 2);
    IS("write-aligned") write_freed(freed(aligned(SMALL)), 0);
    IS("write-reused") write_freed(freed_and_reused(), 0);
    IS("write-moved") write_freed(moved_away(), 0);

    IS("re-freed") resize(freed(block(SMALL)), NULL);
    IS("re-large") resize(freed(block(LARGE)), NULL);
    IS("re-aligned") resize(freed(aligned(MIDDLE)), NULL);
    IS("re-over-one") resize_overrun(among(block, SMALL), SMALL, 1);
    IS("re-over-many") resize_overrun(among(block, FULL), FULL, FULL);
    IS("re-interior") resize_within(block(SMALL), 16);
    IS("re-inner-large") resize_within(block(LARGE), 4096);
    IS("re-inner-aligned") resize_within(aligned(MIDDLE), 64);
    IS("re-stack") resize(frame + 64, NULL);
    IS("re-static") resize(in_the_program + 64, NULL);
    IS("re-mapping") resize(elsewhere + 4096, NULL);
    IS("re-unmapped") resize(unmapped(), NULL);
    else return 0;
    return 1;
}

int main(int count, char **words)
{
    unsigned char frame[256] __attribute__((aligned(64)));
    begin();
    keep(frame, sizeof frame);
    keep(in_the_program, sizeof in_the_program);
    unsigned char *elsewhere = keep(mapping(), FOREIGN);
    size_t owned = kept_count;
    if (count != 2 || !commit(words[1], frame, elsewhere)) return 64;
    go_on(size, owned);
}
