// Loads that show the effect of a setting in the statistics that the allocator writes at exit, or
// in the kernel's data about the process.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 64, SMALL_BLOCKS = 10000, SIZE = 1000, BLOCKS = 64 << 10, RUN = 8 << 20,
       MAPPING = 64 << 20, PAIRS = 1000000 };

static void *blocks[BLOCKS];

static void *allocated(int i, size_t size) {
    if ((blocks[i] = malloc(size)) == NULL)
        exit(3);
    return blocks[i];
}

static void allocate(int count, size_t size) {
    for (int i = 0; i < count; i++)
        allocated(i, size);
}

static void free_all(int count) {
    for (int i = 0; i < count; i++)
        free(blocks[i]);
}

// Returns the number of mappings for which huge pages were requested.
static int advised(void) {
    FILE *mappings = fopen("/proc/self/smaps", "r");
    char line[512];
    int count = 0;
    if (mappings == NULL)
        exit(4);
    while (fgets(line, sizeof line, mappings) != NULL)
        count += strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL;
    fclose(mappings);
    return count;
}

// Returns how many bytes of freed blocks are unchanged.
static size_t stale(void) {
    static unsigned char *volatile block;
    size_t count = 0;
    for (size_t size = 16; size < 128 << 10; size += size / 3) {
        if ((block = malloc(size)) == NULL)
            exit(3);
        memset(block, 0x11, size);
        free(block);
        for (size_t i = 0; i < size; i++)
            count += block[i] == 0x11;
    }
    return count;
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (strcmp(what, "refills") == 0) {
        allocate(SMALL_BLOCKS, SMALL);
        free_all(SMALL_BLOCKS);
    } else if (strcmp(what, "touched") == 0) {
        for (int i = 0; i < BLOCKS; i++)
            memset(allocated(i, SIZE), 1, SIZE);
        printf("%d\n", advised());
    } else if (strcmp(what, "untouched") == 0) {
        allocate(BLOCKS, SIZE);
        printf("%d\n", advised());
    } else if (strcmp(what, "run") == 0) {
        allocated(0, RUN);
        printf("%d\n", advised());
    } else if (strcmp(what, "mapping") == 0) {
        allocated(0, MAPPING);
        printf("%d\n", advised());
    } else if (strcmp(what, "stale") == 0) {
        printf("%zu\n", stale());
    } else if (strcmp(what, "purges") == 0) {
        allocate(BLOCKS, SIZE);
        free_all(BLOCKS);
        for (int i = 0; i < PAIRS; i++)
            free(malloc(SMALL));
    } else {
        return 2;
    }
    return 0;
}
