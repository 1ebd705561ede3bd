/* Work whose amount is exact: a step is a multiplication that waits for the one before. */
static void work(unsigned long steps) {
    unsigned long state = 1;
    for (unsigned long step = 0; step < steps; step++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        __asm__ volatile("" : "+r"(state));
    }
}
