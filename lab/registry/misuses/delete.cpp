/* Commits one misuse of the C++ operators, named by the first argument. */

#include "misuse.h"

#include <new>

static const size_t SIZE = 64, OTHER = 4096;

static void misuse() { say("misuse", ""); }

static bool commit(const char *what)
{
    void *volatile one = nullptr;
    if (strcmp(what, "delete-twice") == 0) {
        one = operator new(SIZE);
        operator delete(one);
        misuse();
        operator delete(one);
    } else if (strcmp(what, "delete-size") == 0) {
        one = operator new(SIZE);
        misuse();
        operator delete(one, OTHER);
    } else if (strcmp(what, "delete-array") == 0) {
        one = operator new[](SIZE);
        misuse();
        operator delete(one);
    } else if (strcmp(what, "delete-malloc") == 0) {
        one = had(malloc(SIZE));
        misuse();
        operator delete(one);
    } else if (strcmp(what, "delete-free") == 0) {
        one = operator new(SIZE);
        misuse();
        free(one);
    } else if (strcmp(what, "delete-aligned") == 0) {
        one = operator new(SIZE, std::align_val_t(256));
        misuse();
        operator delete(one);
    } else {
        return false;
    }
    say("free", "");
    return true;
}

int main(int count, char **words)
{
    begin();
    if (count != 2 || !commit(words[1])) return 64;
    go_on(SIZE, 0);
}
