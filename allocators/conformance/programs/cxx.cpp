// operator new and delete. argv[1] names the check.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

#include "must.h"

static const size_t HUGE_SIZE = SIZE_MAX / 2 - 100;
static const std::align_val_t ALIGNED{256};
static int calls;

struct Guard {
    bool *unwound;
    ~Guard() { *unwound = true; }
};

// Calls through pointers, so that the compiler cannot omit an allocation.
static void *(*volatile plain)(size_t) = ::operator new;
static void *(*volatile array)(size_t) = ::operator new[];
static void *(*volatile aligned)(size_t, std::align_val_t) = ::operator new;
static void *(*volatile aligned_array)(size_t, std::align_val_t) = ::operator new[];
static void *(*volatile quiet)(size_t, const std::nothrow_t &) = ::operator new;
static void *(*volatile quiet_array)(size_t, const std::nothrow_t &) = ::operator new[];
static void *(*volatile quiet_aligned)(size_t, std::align_val_t, const std::nothrow_t &) = ::operator new;
static void *(*volatile quiet_aligned_array)(size_t, std::align_val_t, const std::nothrow_t &) = ::operator new[];

template <typename Exception, typename Call> static void must_throw(Call call) {
    bool unwound = false, caught = false;
    try {
        Guard guard{&unwound};
        call();
    } catch (const Exception &) {
        caught = true;
    }
    MUST(unwound && caught);
}

template <typename Exception> static void all_must_throw() {
    must_throw<Exception>([] { plain(HUGE_SIZE); });
    must_throw<Exception>([] { array(HUGE_SIZE); });
    must_throw<Exception>([] { aligned(HUGE_SIZE, ALIGNED); });
    must_throw<Exception>([] { aligned_array(HUGE_SIZE, ALIGNED); });
}

static void all_must_be_null() {
    MUST(quiet(HUGE_SIZE, std::nothrow) == nullptr);
    MUST(quiet_array(HUGE_SIZE, std::nothrow) == nullptr);
    MUST(quiet_aligned(HUGE_SIZE, ALIGNED, std::nothrow) == nullptr);
    MUST(quiet_aligned_array(HUGE_SIZE, ALIGNED, std::nothrow) == nullptr);
}

static void counting_handler() {
    if (++calls % 3 == 0)
        std::set_new_handler(nullptr);
}

// The handler is called until it gives up.
static void new_handler() {
    for (int round = 1; round <= 4; round++) {
        std::set_new_handler(counting_handler);
        must_throw<std::bad_alloc>([&] { round % 2 ? plain(HUGE_SIZE) : aligned(HUGE_SIZE, ALIGNED); });
        MUST(calls == 3 * round);
    }
    std::set_new_handler(counting_handler);
    MUST(quiet(HUGE_SIZE, std::nothrow) == nullptr);
    MUST(calls == 15);
}

static void bad_alloc() {
    for (int round = 0; round < 100; round++)
        all_must_throw<std::bad_alloc>();
    int *fine = new int[1000];
    delete[] fine;
}

struct Own {};
static void throwing_handler() { throw Own(); }

static void handler_throws() {
    std::set_new_handler(throwing_handler);
    all_must_throw<Own>();
}

static void nothrow() {
    for (int round = 0; round < 100; round++)
        all_must_be_null();
    void *fine = quiet(100, std::nothrow);
    MUST(fine != nullptr);
    ::operator delete(fine, std::nothrow);
}

static void out_of_memory_handler() {
    calls++;
    throw std::bad_alloc();
}

static void nothrow_handler_throws() {
    std::set_new_handler(out_of_memory_handler);
    all_must_be_null();
    MUST(calls == 4);
    // Repeat this while another exception is handled.
    try {
        throw 7;
    } catch (int seven) {
        all_must_be_null();
        MUST(seven == 7 && calls == 8);
    }
}

static void aligned_new() {
    for (size_t alignment = 1; alignment <= 1 << 20; alignment *= 2) {
        for (size_t size : std::initializer_list<size_t>{0, 1, 100, 5000, 100000, 3000000}) {
            std::align_val_t wanted{alignment};
            void *blocks[] = {aligned(size, wanted), aligned_array(size, wanted),
                              quiet_aligned(size, wanted, std::nothrow),
                              quiet_aligned_array(size, wanted, std::nothrow)};
            for (void *block : blocks) {
                MUST(block != nullptr && (uintptr_t)block % alignment == 0);
                memset(block, 1, size);
            }
            ::operator delete(blocks[0], size, wanted);
            ::operator delete[](blocks[1], wanted);
            ::operator delete(blocks[2], wanted, std::nothrow);
            ::operator delete[](blocks[3], size, wanted);
        }
    }
    for (size_t size = 0; size < 3000; size++) {
        void *one = plain(size), *two = array(size);
        MUST(one != nullptr && two != nullptr && one != two);
        MUST((uintptr_t)one % (size < 16 ? 8 : 16) == 0);
        ::operator delete(one, size);
        ::operator delete[](two, size);
        ::operator delete(nullptr, size);
    }
}

static void handler_that_leaves() {
    calls++;
    std::set_new_handler(nullptr);
}

// Impossible alignments and sizes. libstdc++ rounds a size near SIZE_MAX up to 0 and succeeds, so
// such sizes are not requested.
static void extreme_new() {
    const size_t sizes[] = {1, 100, 1 << 20, (size_t)1 << 46, PTRDIFF_MAX};
    for (size_t power = 1; power != 0; power *= 2) {
        for (size_t size : sizes) {
            std::align_val_t wanted{power};
            for (auto function : {aligned, aligned_array}) {
                void *block = nullptr;
                bool thrown = false;
                calls = 0;
                std::set_new_handler(handler_that_leaves);
                try {
                    block = function(size, wanted);
                } catch (const std::bad_alloc &) {
                    thrown = true;
                }
                MUST(thrown == (block == nullptr) && calls == (thrown ? 1 : 0));
                MUST((uintptr_t)block % power == 0 && (size < (size_t)PTRDIFF_MAX || thrown));
                ::operator delete(block, wanted);
            }
            std::set_new_handler(nullptr);
            void *block = quiet_aligned(size, wanted, std::nothrow);
            MUST((uintptr_t)block % power == 0);
            ::operator delete(block, wanted);
        }
    }
}

int main(int count, char **words) {
    const struct {
        const char *name;
        void (*run)();
    } checks[] = {
        {"new-handler", new_handler},
        {"bad-alloc", bad_alloc},
        {"handler-throws", handler_throws},
        {"nothrow", nothrow},
        {"nothrow-handler-throws", nothrow_handler_throws},
        {"aligned-new", aligned_new},
        {"extreme-new", extreme_new},
    };
    for (const auto &check : checks) {
        if (count > 1 && strcmp(words[1], check.name) == 0) {
            check.run();
            return 0;
        }
    }
    fprintf(stderr, "no such check\n");
    return 2;
}
