// Forks beside C++ streams and stdio, like fork_stdio.c in C.
#include "storm.h"
#include <algorithm>
#include <fstream>
#include <map>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static void read_stream_turn(worker *) {
    std::ifstream file(path);
    MUST(file.is_open());
    std::string text;
    for (int line = 0; line < LINES; line++) {
        std::string().swap(text);
        MUST(std::getline(file, text) && text.size() == LINE - 1);
        for (size_t at = 0; at < LINE - 1; at += 97)
            MUST(text[at] == line_byte(line, at));
    }
}

static void write_stream_turn(worker *me) {
    std::ofstream nowhere("/dev/null");
    MUST(nowhere.is_open());
    std::ostringstream stream;
    unsigned rows = 1 + next_random(me) % 300;
    for (unsigned row = 0; row < rows; row++)
        stream << row << ' ' << std::string(100, 'x') << '\n';
    std::string text = stream.str();
    MUST(std::count(text.begin(), text.end(), '\n') == (long)rows);
    nowhere << text << std::flush;
    MUST(nowhere.good());
}

static void container_turn(worker *me) {
    std::map<unsigned, std::vector<unsigned>> map;
    for (int i = 0; i < 200; i++) {
        unsigned key = next_random(me) % 50;
        map[key].push_back(key);
    }
    for (const auto &entry : map)
        for (unsigned key : entry.second)
            MUST(key == entry.first);
}

static void throw_turn(worker *me) {
    std::string text(100 + next_random(me) % 5000, 't');
    try {
        throw std::runtime_error(text);
    } catch (const std::runtime_error &error) {
        MUST(error.what() == text);
    }
}

struct alignas(256) Aligned {
    char data[300];
};

static void aligned_turn(worker *me) {
    size_t count = 1 + next_random(me) % 100;
    Aligned *all = new Aligned[count];
    MUST((size_t)all % 256 == 0);
    memset(static_cast<void *>(all), 7, count * sizeof *all);
    MUST(all[count - 1].data[299] == 7);
    delete[] all;
}

static void thread_turn(worker *me) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) {
        worker like = *me;
        like.random = next_random(me);
        threads.emplace_back([like]() mutable { container_turn(&like); });
    }
    for (std::thread &thread : threads)
        thread.join();
}

int main() {
    static const kind kinds[] = {
        {"line reader", read_turn, 6},
        {"flusher", flush_turn, 1},
        {"reader of a stream", read_stream_turn, 2},
        {"writer of streams", write_stream_turn, 2},
        {"user of containers", container_turn, 2},
        {"thrower", throw_turn, 1},
        {"user of aligned blocks", aligned_turn, 1},
        {"starter of threads", thread_turn, 1},
        {"exchanger of blocks", exchange_turn, 1},
        {"forker", fork_turn, 4},
    };
    write_lines();
    storm(kinds, sizeof kinds / sizeof *kinds, 5);
    return 0;
}
