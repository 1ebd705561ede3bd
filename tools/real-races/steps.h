/* Performs an exact amount of work: each step is a multiplication that depends on the previous
   step. */
static void work(unsigned long steps) {
    unsigned long state = 1;
    for (unsigned long step = 0; step < steps; step++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        __asm__ volatile("" : "+r"(state));
    }
}
