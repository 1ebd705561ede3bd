// One misuse, which the first argument names. Most first print the address that a message should
// name.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char in_the_program[64] __attribute__((aligned(16)));

static char *named(void *address) {
    dprintf(1, "%#zx", (size_t)address);
    return address;
}

static void others(size_t size) {
    for (int i = 0; i < 5000; i++) {
        char *volatile one = malloc(size);
        one[0] = 1;
        free(one);
    }
}

static void move(char *block) {
    char *to = realloc(block, 9000);
    if (to == NULL || to == block)
        exit(3);
}

static int is_readable(const char *block) {
    return memcmp(block, "a secret", 4) == 0 || memcmp(block + 4, "cret", 4) == 0;
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    char in_the_frame[64] __attribute__((aligned(16)));
    if (strcmp(what, "twice") == 0) {
        char *block = named(malloc(100));
        free(block);
        free(block);
    } else if (strcmp(what, "twice-later") == 0) {
        char *block = named(malloc(100));
        free(block);
        others(500);
        free(block);
    } else if (strcmp(what, "twice-medium") == 0) {
        char *block = named(malloc(9000));
        free(block);
        free(block);
    } else if (strcmp(what, "twice-large") == 0) {
        char *block = named(malloc(1 << 20));
        free(block);
        free(block);
    } else if (strcmp(what, "zero-twice") == 0) {
        char *block = named(malloc(0));
        free(block);
        free(malloc(0));
        free(block);
    } else if (strcmp(what, "zero-write") == 0) {
        char *volatile block = named(malloc(0));
        block[0] = 1;
    } else if (strcmp(what, "zero-read") == 0) {
        char *volatile block = named(calloc(0, 8));
        return block[0];
    } else if (strcmp(what, "zero-use") == 0) {
        char *block = malloc(0), *other = malloc(0);
        int is_good = block && other && block != other && malloc_usable_size(block) == 0;
        block = realloc(block, 100);
        memset(block, 1, 100);
        free(block);
        free(other);
        return is_good ? 0 : 1;
    } else if (strcmp(what, "interior") == 0) {
        free(named((char *)malloc(100) + 16));
    } else if (strcmp(what, "interior-odd") == 0) {
        free(named((char *)malloc(100) + 8));
    } else if (strcmp(what, "interior-medium") == 0) {
        free(named((char *)malloc(9000) + 64));
    } else if (strcmp(what, "interior-large") == 0) {
        free(named((char *)malloc(1 << 20) + 4096));
    } else if (strcmp(what, "frame") == 0) {
        free(named(in_the_frame));
    } else if (strcmp(what, "foreign") == 0) {
        free(named(in_the_program));
    } else if (strcmp(what, "overflow-by-zero") == 0) {
        char *block = named(malloc(100));
        block[100] = 0;
        free(block);
    } else if (strcmp(what, "overflow-full") == 0) {
        char *block = named(malloc(112));
        block[112] = 'x';
        free(block);
    } else if (strcmp(what, "overflow-medium") == 0) {
        char *block = named(malloc(9000));
        memset(block + 9000, 'x', 20);
        free(block);
    } else if (strcmp(what, "overflow-realloc") == 0) {
        char *block = named(malloc(100));
        block[100] = 0;
        move(block);
    } else if (strcmp(what, "overflow-realloc-by-many") == 0) {
        char *block = named(malloc(64));
        memset(block + 64, 'x', 16);
        move(block);
    } else if (strcmp(what, "overflow-large") == 0) {
        volatile char *block = malloc(200000);
        block[200000] = 'x';
    } else if (strcmp(what, "underflow-large") == 0) {
        volatile char *block = malloc(200000);
        block[-8192] = 'x';
    } else if (strcmp(what, "underflow-small") == 0) {
        // An underflow of the second block: the allocator reports that the first was overrun.
        char *blocks[64];
        for (int i = 0; i < 64; i++)
            blocks[i] = malloc(64);
        char *first = blocks[0];
        for (int i = 1; i < 64; i++)
            if (blocks[i] < first)
                first = blocks[i];
        named(first);
        first[80 - 1] = 'x';
        free(first);
    } else if (strcmp(what, "underflow-large-by-one") == 0) {
        char *block = named(malloc(200000));
        block[-1] = 'x';
        free(block);
    } else if (strcmp(what, "overflow-grown-by-one") == 0) {
        char *block = realloc(malloc(200000), 300000);
        named(block)[300000] = 'x';
        free(block);
    } else if (strcmp(what, "overflow-grown") == 0) {
        volatile char *block = realloc(malloc(200000), 300000);
        block[300000 + 4096] = 'x';
    } else if (strcmp(what, "size-of-delete") == 0) {
        void _ZdlPvm(void *, size_t) __attribute__((weak));
        if (_ZdlPvm == NULL)
            return 3;
        _ZdlPvm(named(malloc(64)), 80);
    } else if (strcmp(what, "write-after-free") == 0) {
        volatile char *block = named(malloc(100));
        free((void *)block);
        block[5] = 'x';
        others(100);
    } else if (strcmp(what, "write-after-realloc") == 0) {
        char *volatile block = named(malloc(100));
        move(block);
        block[5] = 'x';
        others(100);
    } else if (strcmp(what, "read-after-free") == 0) {
        char *volatile block = malloc(100);
        strcpy(block, "a secret");
        free(block);
        return is_readable(block);
    } else if (strcmp(what, "read-after-realloc") == 0) {
        char *volatile block = malloc(100);
        strcpy(block, "a secret");
        move(block);
        return is_readable(block);
    } else if (strcmp(what, "order") == 0) {
        int at_once = 0, ascending = 0;
        uintptr_t before = 0;
        for (int i = 0; i < 1000; i++) {
            void *block = malloc(100);
            free(block);
            void *next = malloc(100);
            at_once += next == block;
            ascending += (uintptr_t)next > before;
            before = (uintptr_t)next;
            free(next);
        }
        return at_once != 0 || ascending < 300 || ascending > 700;
    } else {
        return 2;
    }
    return 4;
}
