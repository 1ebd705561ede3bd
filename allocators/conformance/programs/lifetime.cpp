// Allocation before main, after main, and in destructors of thread-local objects.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "must.h"

static void churn() {
    std::vector<std::unique_ptr<char[]>> blocks;
    for (size_t i = 0; i < 300; i++) {
        size_t size = i * i % 5000 + 1;
        blocks.emplace_back(new char[size]);
        memset(blocks.back().get(), (int)i, size);
        blocks.back()[0] = (char)i;
    }
    for (size_t i = 0; i < 300; i++)
        MUST(blocks[i][0] == (char)i);
}

struct Object {
    std::string text = std::string(1000, 'x');
    char *block = static_cast<char *>(malloc(100000));
    Object() {
        MUST(block != nullptr);
        memset(block, 7, 100000);
        churn();
    }
    ~Object() {
        for (size_t i = 0; i < 100000; i++)
            MUST(block[i] == 7);
        free(block);
        churn();
        MUST(text == std::string(1000, 'x'));
    }
};

static Object before_and_after_main;
static thread_local Object of_thread;

static void at_exit() { churn(); }

int main(int count, char **words) {
    MUST(count > 1);
    if (strcmp(words[1], "static-lifetime") == 0) {
        for (int i = 0; i < 40; i++)
            MUST(atexit(at_exit) == 0);
        MUST(before_and_after_main.text.size() == 1000);
        return 0;
    }
    for (int round = 0; round < 50; round++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; i++)
            threads.emplace_back([] { MUST(of_thread.text.size() == 1000); });
        for (auto &thread : threads)
            thread.join();
    }
    MUST(of_thread.text.size() == 1000);
    return 0;
}
