/* Common parts of the programs that misuse an allocator deliberately. Each run commits one kind of
   misuse, and reports each stage that the program reaches and any visible harm, line by line:

     @misuse   setup is complete; the misuse follows
     @free     the program survived the misuse; it frees the affected blocks next
     @later    the program survived that; it allocates, fills, checks and frees other blocks next
     @exit     the program survived that; it ends next
     @harm     memory that the program owns changed, two blocks overlap, or a freed block was read
     @cannot   the misuse is impossible here

   All other output comes from the allocator. The program's lines begin with a line break, in case
   the allocator's output does not end with one. They go to the file that also receives standard
   error, so that the order of lines is the order of events. */

#ifndef HEAPDROME_MISUSE_H
#define HEAPDROME_MISUSE_H

#include "basic.h"

#include <sys/prctl.h>

enum { MOST_KEPT = 2000, NEIGHBOURS = 200, FRESH = 1500 };
static const size_t FRESH_BYTES = 16u << 20;

/* Memory whose contents must not change. */
struct kept {
    unsigned char *start;
    size_t length;
    unsigned char fill;
};

static struct kept kept[MOST_KEPT];
static size_t kept_count;
static int harmed;

static void say(const char *what, const char *more)
{
    char line[200];
    int length = snprintf(line, sizeof line, "\n@%s %s\n", what, more);
    if (write(1, line, (size_t)length) < 0) _exit(3);
}

static void harm(const char *what)
{
    if (!harmed) say("harm", what);
    harmed = 1;
}

static void *had(void *block)
{
    if (block == NULL) {
        say("cannot", "there is no memory");
        _exit(0);
    }
    return block;
}

/* Fills memory that the program owns, and records the fill byte. */
static unsigned char *keep(void *start, size_t length)
{
    struct kept *one = &kept[kept_count];
    if (kept_count++ == MOST_KEPT) _exit(3);
    one->start = (unsigned char *)start;
    one->length = length;
    one->fill = (unsigned char)(kept_count * 7 % 255 + 1);
    memset(start, one->fill, length);
    return one->start;
}

static int is_changed(const struct kept *one)
{
    for (size_t i = 0; i < one->length; i++)
        if (one->start[i] != one->fill) return 1;
    return 0;
}

static void look(const char *what)
{
    for (size_t i = 0; i < kept_count; i++)
        if (is_changed(&kept[i])) harm(what);
}

/* Frees the recorded blocks from index `from` on. */
static void free_kept(size_t from)
{
    while (kept_count > from) free(kept[--kept_count].start);
}

/* Allocates many blocks, checks whether any two overlap, and frees them. */
static void fresh(size_t size)
{
    size_t before = kept_count, count = FRESH_BYTES / size;
    if (count > FRESH) count = FRESH;
    for (size_t i = 0; i < count; i++) keep(had(malloc(size)), size);
    look("two blocks overlap, or one is not the allocator's");
    free_kept(before);
}

/* Allocates and frees blocks one by one. */
static void churn(size_t size)
{
    for (int i = 0; i < 5000; i++) {
        char *volatile one = (char *)had(malloc(size));
        one[0] = 1;
        free(one);
    }
}

/* Simulates the rest of the program's life. The first `owned` recorded blocks are not from
   malloc. */
static void go_on(size_t size, size_t owned)
{
    say("later", "");
    look("the contents of a live block changed");
    fresh(size);
    for (size_t i = owned; i < kept_count; i++) free(kept[i].start);
    kept_count = owned;
    fresh(size);
    churn(size);
    fresh(size);
    say("exit", "");
    exit(0);
}

static void begin(void)
{
    require_allocator();
    prctl(PR_SET_DUMPABLE, 0);
}

#endif
