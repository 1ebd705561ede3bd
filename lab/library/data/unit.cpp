// A translation unit with templates and strings, like much of today's C++.
#include <map>
#include <string>
#include <vector>
#ifdef FULL
#include <iostream>
#include <regex>
#endif

template <int N> struct Table {
    std::map<std::string, std::vector<int>> rows;
    void add(const std::string& key) {
        rows[key].push_back(N);
        Table<N - 1> smaller;
        smaller.add(key);
    }
};

template <> struct Table<0> {
    void add(const std::string&) {}
};

int main() {
    Table<8> table;
    table.add("key");
#ifdef FULL
    std::regex word("[a-z]+");
    std::cout << std::regex_match("word", word) << '\n';
#endif
    return static_cast<int>(table.rows.size());
}
