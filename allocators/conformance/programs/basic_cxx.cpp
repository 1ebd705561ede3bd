// A program in C++: forms of operator new and delete, containers, exceptions, thread-local objects.

#include "basic.h"

#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

struct alignas(128) Wide {
    char bytes[256];
};

// Allocates before main and frees after it.
std::string before_main(1000, 'x');

void operators()
{
    for (std::size_t size = 0; size < 3000; size += 7) {
        auto *one = static_cast<char *>(::operator new(size));
        auto *many = static_cast<char *>(::operator new[](size));
        memset(one, 1, size);
        memset(many, 2, size);
        REQUIRE(size == 0 || one[size - 1] == 1, "operator new gave overlapping memory");
        ::operator delete(one, size);
        ::operator delete[](many, size);
        ::operator delete(::operator new(size, std::nothrow), std::nothrow);
    }
    for (std::size_t alignment = 16; alignment <= 65536; alignment *= 2) {
        auto align = static_cast<std::align_val_t>(alignment);
        void *memory = ::operator new(100, align);
        REQUIRE(reinterpret_cast<uintptr_t>(memory) % alignment == 0,
                "operator new did not align to %zu", alignment);
        ::operator delete(memory, align);
    }
    auto wide = std::make_unique<Wide[]>(33);
    REQUIRE(reinterpret_cast<uintptr_t>(wide.get()) % 128 == 0, "new did not align to 128");
}

void containers()
{
    std::map<std::string, std::vector<int>> ordered;
    std::unordered_map<int, std::shared_ptr<std::string>> hashed;
    for (int i = 0; i < 50000; i++) {
        ordered[std::to_string(i % 5000)].push_back(i);
        hashed[i % 3000] = std::make_shared<std::string>(static_cast<std::size_t>(i % 100), 'y');
    }
    std::size_t sum = 0;
    for (const auto &entry : ordered) sum += entry.second.size();
    REQUIRE(sum == 50000, "a container lost objects");
    for (const auto &entry : hashed)
        REQUIRE(entry.second->find_first_not_of('y') == std::string::npos, "a string changed");
}

thread_local std::vector<std::string> of_thread;

void threads()
{
    for (int round = 0; round < 50; round++) {
        std::thread worker([] {
            for (int i = 0; i < 100; i++) of_thread.emplace_back(100, 'z');
        });
        worker.join();
    }
}

} // namespace

int main()
{
    require_allocator();
    REQUIRE(before_main.size() == 1000, "an object from before main changed");
    operators();
    containers();
    threads();
    for (int i = 0; i < 100; i++) {
        try {
            throw std::string(100, 'e');
        } catch (const std::string &text) {
            REQUIRE(text.size() == 100, "an exception changed");
        }
    }
    REQUIRE(peak_mib() < 1024, "%ld MiB were resident for a few MiB of objects", peak_mib());
    return 0;
}
