/* Every file of musl's mallocs includes this header first. It removes the attributes by which
   glibc's headers describe malloc's result to the compiler. The attributes do not hold inside
   malloc, and musl's headers do not contain them. */

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
