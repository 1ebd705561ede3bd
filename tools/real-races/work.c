/* A command that makes some small allocations and then performs STEPS steps of work. */
#include <stdlib.h>
#include <string.h>

#include "steps.h"

int main(void) {
    for (int block = 0; block < 2000; block++) {
        char *bytes = malloc(64 + block % 512);
        if (!bytes) return 1;
        memset(bytes, block, 64);
        if (block % 2) free(bytes);
    }
    work(STEPS);
    return 0;
}
