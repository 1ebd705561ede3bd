#include "linked.h"

#include <new>
#include <string>
#include <vector>

int main() {
    use_the_header();
    must_be_the_librarys("_Znwm");
    must_be_the_librarys("_ZdlPvm");
    std::vector<std::string> words(1000, std::string(100, 'x'));
    words.resize(10);
    MUST(words[9].size() == 100);
    try {
        words.resize(words.max_size());
        return 1;
    } catch (const std::bad_alloc &) {
        return 0;
    }
}
