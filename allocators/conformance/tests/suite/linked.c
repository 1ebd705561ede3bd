#define _GNU_SOURCE 1
#include "linked.h"

int main(void) {
    use_the_header();
    return 0;
}
