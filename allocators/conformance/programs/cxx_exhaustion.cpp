// No memory in C++: exceptions, and all is well when some has been freed. Runs in little address space.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#define MUST(condition)                                                          \
    do {                                                                         \
        if (!(condition)) {                                                      \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);      \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

struct Node {
    Node *next;
    char data[1000];
};

static char *reserve;
static int handled;

static void release_reserve() {
    handled++;
    MUST(reserve != nullptr || handled > 1);
    free(reserve);
    reserve = nullptr;
    std::set_new_handler(nullptr);
}

static void fill_and_drain() {
    Node *all = nullptr;
    bool thrown = false;
    try {
        for (;;) {
            Node *node = new Node;
            node->next = all;
            all = node;
        }
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    MUST(thrown && all != nullptr);
    while (all) {
        Node *next = all->next;
        delete all;
        all = next;
    }
}

int main() {
    for (int round = 0; round < 4; round++)
        fill_and_drain();
    reserve = static_cast<char *>(malloc(8 << 20));
    MUST(reserve != nullptr);
    std::set_new_handler(release_reserve);
    fill_and_drain();
    MUST(handled == 1);
    std::vector<char> fine(1 << 20);
    return fine[77];
}
