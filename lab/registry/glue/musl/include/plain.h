/* Included before anything else when musl's mallocs are compiled. glibc's headers tell the compiler
   what it may assume of malloc's result; inside malloc that does not hold, and musl's headers make
   no such promise. */

#ifndef HEAPDROME_MUSL_PLAIN_H
#define HEAPDROME_MUSL_PLAIN_H

#define _GNU_SOURCE

#include <sys/cdefs.h>

#undef __attribute_malloc__
#define __attribute_malloc__
#undef __attribute_alloc_size__
#define __attribute_alloc_size__(arguments)
#undef __attribute_alloc_align__
#define __attribute_alloc_align__(argument)
#undef __attr_dealloc
#define __attr_dealloc(function, argument)
#undef __attr_dealloc_free
#define __attr_dealloc_free

#endif
