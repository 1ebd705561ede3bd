// A program that requests more memory than there can be, and must get an error.

#include "basic.h"

#include <cerrno>
#include <new>

namespace {

// volatile hides the size from the compiler.
volatile std::size_t huge = SIZE_MAX - 100;
volatile std::size_t half = SIZE_MAX / 2 + 2;
volatile std::size_t quarter = SIZE_MAX / 4;

void in_c()
{
    errno = 0;
    REQUIRE(malloc(huge) == nullptr, "malloc of nearly SIZE_MAX gave memory");
    if (errno != ENOMEM) printf("malloc sets errno to %d instead of ENOMEM\n", errno);
    REQUIRE(malloc(quarter) == nullptr, "malloc of SIZE_MAX / 4 gave memory");
    REQUIRE(calloc(half, 2) == nullptr, "calloc did not notice that its size overflows");
    auto *kept = static_cast<char *>(malloc(100));
    kept[99] = 'k';
    REQUIRE(realloc(kept, huge) == nullptr, "realloc to nearly SIZE_MAX gave memory");
    REQUIRE(kept[99] == 'k', "a realloc that failed changed the object");
    free(kept);
}

void in_cpp()
{
    REQUIRE(::operator new(huge, std::nothrow) == nullptr,
            "the nothrow operator new of nearly SIZE_MAX gave memory");
    bool caught = false;
    try {
        ::operator delete(::operator new(huge));
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    REQUIRE(caught, "operator new of nearly SIZE_MAX did not throw std::bad_alloc");
}

} // namespace

int main()
{
    require_allocator();
    in_c();
    in_cpp();
    return 0;
}
