/* Definitions that musl's mallocs expect from musl's headers about linking. */

#ifndef HEAPDROME_MUSL_DYNLINK_H
#define HEAPDROME_MUSL_DYNLINK_H

#define hidden __attribute__((__visibility__("hidden")))
#define weak_alias(old, new) \
    extern __typeof(old) new __attribute__((__weak__, __alias__(#old)))

/* In musl, these show whether a program replaces malloc. Here, musl's malloc is always in use. */
#define __malloc_replaced 0
#define __aligned_alloc_replaced 0

hidden int __malloc_allzerop(void *);
hidden void __malloc_atfork(int);

#endif
