/* musl's fork calls __malloc_atfork itself. Here fork.c registers it with glibc. */

#include "dynlink.h"
