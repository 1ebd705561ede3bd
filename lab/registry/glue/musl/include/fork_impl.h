/* musl's fork calls __malloc_atfork itself; here fork.c asks glibc to. */

#include "dynlink.h"
