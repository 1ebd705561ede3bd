// Exhausted memory in C++: exceptions, and everything works once some has been freed. Runs with
// little address space. argv[1] names the check.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "must.h"

struct Node {
    Node *next;
    char data[1000];
};

struct alignas(256) AlignedNode {
    AlignedNode *next;
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

template <typename Node> static void drain(Node *all) {
    while (all) {
        Node *next = all->next;
        delete all;
        all = next;
    }
}

template <typename Node> static void fill_and_drain() {
    Node *all = nullptr;
    bool thrown = false;
    try {
        for (;;) {
            Node *node = new Node;
            MUST((uintptr_t)node % alignof(Node) == 0);
            node->next = all;
            all = node;
        }
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    MUST(thrown && all != nullptr);
    drain(all);
}

// The nothrow functions return null every time.
template <typename Node> static void fill_quietly() {
    Node *all = nullptr;
    while (Node *node = new (std::nothrow) Node) {
        node->next = all;
        all = node;
    }
    for (int times = 0; times < 100; times++) {
        Node *more = new (std::nothrow) Node[8000];
        MUST(more == nullptr);
    }
    drain(all);
    Node *fine = new (std::nothrow) Node[100];
    MUST(fine != nullptr);
    delete[] fine;
}

template <typename Node> static int throws() {
    for (int round = 0; round < 4; round++)
        fill_and_drain<Node>();
    fill_quietly<Node>();
    reserve = static_cast<char *>(malloc(8 << 20));
    MUST(reserve != nullptr);
    std::set_new_handler(release_reserve);
    fill_and_drain<Node>();
    MUST(handled == 1);
    std::vector<char> fine(1 << 20);
    return fine[77];
}

int main(int count, char **words) {
    MUST(count > 1);
    if (strcmp(words[1], "exhaustion-throws") == 0)
        return throws<Node>();
    if (strcmp(words[1], "exhaustion-throws-aligned") == 0)
        return throws<AlignedNode>();
    return 2;
}
