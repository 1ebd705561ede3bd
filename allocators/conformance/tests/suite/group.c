// Repeatedly fills most of a small control group with other sizes, and frees it. Memory that the
// allocator keeps must serve them, or be returned in time. Otherwise the kernel kills the process.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 19 };

static char *blocks[MOST];
static unsigned state = 1;

static unsigned draw(void) {
    state = state * 1103515245 + 12345;
    return state >> 8;
}

// Minimum of the sizes, and their range.
static const struct {
    size_t least, range;
} kinds[] = {{64, 448}, {512, 7680}, {8 << 10, 120 << 10}, {100 << 10, 4 << 20}, {200, 60 << 10}, {32 << 20, 1}};

struct round {
    int number;
    size_t bytes;
};

static void *play(void *of) {
    struct round *round = of;
    int kind = round->number % (int)(sizeof kinds / sizeof *kinds), count = 0;
    for (size_t left = round->bytes; count < MOST; count++) {
        size_t size = kinds[kind].least + draw() % kinds[kind].range;
        if (size > left)
            break;
        blocks[count] = malloc(size);
        if (blocks[count] == NULL)
            exit(3);
        memset(blocks[count], 1, size);
        left -= size;
    }
    // Frees in order, in reverse, and in random order.
    for (int i = 0; i < count; i++) {
        int j = round->number % 3 == 0 ? i : round->number % 3 == 1 ? count - 1 - i : (int)(draw() % count);
        free(blocks[j]);
        blocks[j] = NULL;
    }
    for (int i = 0; i < count; i++)
        free(blocks[i]);
    return NULL;
}

int main(int count, char **words) {
    if (count != 3)
        return 2;
    int rounds = atoi(words[1]);
    for (int number = 0; number < rounds; number++) {
        struct round round = {number, (size_t)atoi(words[2]) << 20};
        pthread_t thread;
        // Every other round runs on its own thread.
        if (number % 2 == 0)
            play(&round);
        else if (pthread_create(&thread, NULL, play, &round) != 0 || pthread_join(thread, NULL) != 0)
            return 4;
    }
    return 0;
}
