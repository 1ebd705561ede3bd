// Fills most of a small control group, frees it, and begins again with other sizes: what the
// allocator keeps must serve them, or be given back in time, else the kernel kills the process.
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

// Least size, and by how much the greatest is above it.
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
    // In order, in reverse, and in none.
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
        // Every other round on a thread of its own.
        if (number % 2 == 0)
            play(&round);
        else if (pthread_create(&thread, NULL, play, &round) != 0 || pthread_join(thread, NULL) != 0)
            return 4;
    }
    return 0;
}
