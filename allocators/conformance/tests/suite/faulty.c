// glibc's allocator with one fault, which a macro selects. Each fault must make a check fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

#define SLOT static __thread __attribute__((tls_model("initial-exec"), unused))
SLOT int ended;
SLOT unsigned count;
static int is_main(void) { return gettid() == getpid(); }

#if defined FORK_LOCK || defined FORK_HANDLER || defined FORK_HOLDS
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void take(void) { pthread_mutex_lock(&lock); }
static void leave(void) { pthread_mutex_unlock(&lock); }
#else
static void take(void) {}
static void leave(void) {}
#endif

#ifdef FORK_HOLDS
// The lock is held while glibc waits for the lock of its streams.
__attribute__((constructor)) static void hold(void) { pthread_atfork(take, leave, leave); }
#endif
#if defined THREAD_END || defined UNLOADED
static pthread_key_t key;
static void thread_ends(void *value) { ended = value != NULL; }
__attribute__((constructor)) static void make_key(void) { pthread_key_create(&key, thread_ends); }
#endif
#if defined RESERVES || defined COMMITS
#ifdef RESERVES
enum { ACCESS = PROT_NONE };
#else
enum { ACCESS = PROT_READ | PROT_WRITE };
#endif
__attribute__((constructor)) static void reserve(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (mmap(NULL, (size_t)300 << 20, ACCESS, flags, -1, 0) == MAP_FAILED)
        abort();
}
#endif

#ifdef OVERLAP
static char *outer;
#endif
#ifdef RETAINS
extern size_t malloc_usable_size(void *);
// Large blocks of the main thread serve large ones again, and never return to the system.
enum { LARGE = 1000000 };
static void *retained[1000];
static void *find_retained(size_t size) {
    for (int i = 0; i < 1000 && size >= LARGE && is_main(); i++) {
        void *block = retained[i];
        if (block != NULL && malloc_usable_size(block) >= size)
            return retained[i] = NULL, block;
    }
    return NULL;
}
static int retain(void *block) {
    for (int i = 0; i < 1000 && is_main() && malloc_usable_size(block) >= LARGE; i++)
        if (retained[i] == NULL)
            return retained[i] = block, 1;
    return 0;
}
#endif
#ifdef EMPTY_SHARED
static _Alignas(16) char shared[16];
#endif

void *malloc(size_t size) {
#if defined THREAD_END || defined UNLOADED
    if (!is_main() && count++ == 0)
        pthread_setspecific(key, &key);
    if (ended)
        return NULL;
#endif
#ifdef INTERRUPTED
    if (!is_main() && usleep(100) != 0)
        return NULL;
#endif
#ifdef FEW
    if (count++ > 1500)
        return NULL;
#endif
#ifdef FEW_PER_THREAD
    if (!is_main() && count++ > 450)
        return NULL;
#endif
#ifdef EMPTY_SHARED
    if (size == 0)
        return shared;
#endif
#ifdef HUGE_GRANTED
    if (size > PTRDIFF_MAX)
        size = 16;
#endif
#ifdef REFUSES
    if (size > 1000)
        return NULL;
#endif
#ifdef OVERLAP
    if (size <= 32 && count++ % 100 == 99 && outer != NULL)
        return outer + 16;
#endif
#ifdef RETAINS
    void *again = find_retained(size);
    if (again != NULL)
        return again;
#endif
#ifdef FORK_HANDLER
    static int registered;
    if (!is_main() && !__atomic_exchange_n(&registered, 1, __ATOMIC_SEQ_CST))
        pthread_atfork(take, leave, leave);
#endif
    take();
    void *block = __libc_malloc(size);
    leave();
#ifdef DIES
    if (block == NULL)
        abort();
#endif
#ifdef OVERLAP
    if (outer == NULL && size >= 64 && size < 128)
        outer = block;
#endif
    return block;
}

void free(void *block) {
#ifdef ERRNO_LOST
    errno = EAGAIN;
#endif
#ifdef LEAKS
    if (!is_main())
        return;
#endif
#ifdef KEEPS_FOR_FREE
    if (!is_main() && count++ == 0)
        memset(__libc_malloc(16000), 1, 16000);
#endif
#ifdef OVERLAP
    if (outer != NULL && ((char *)block == outer + 16 || (char *)block == outer))
        return;
#endif
#ifdef EMPTY_SHARED
    if (block == shared)
        return;
#endif
#ifdef RETAINS
    if (retain(block))
        return;
#endif
    take();
    __libc_free(block);
    leave();
}

#ifdef NOT_ZEROED
void *calloc(size_t many, size_t size) {
    char *block = __libc_calloc(many, size);
    if (block != NULL && many * size > 8)
        block[many * size - 1] = 1;
    return block;
}
#endif
#ifdef OVERFLOWS
void *calloc(size_t many, size_t size) { return __libc_calloc(1, many * size); }
#endif
#ifdef DIES
static void *or_die(void *block) {
    if (block == NULL)
        abort();
    return block;
}
void *calloc(size_t many, size_t size) { return or_die(__libc_calloc(many, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return or_die(__libc_memalign(alignment, size)); }
void *memalign(size_t alignment, size_t size) { return or_die(__libc_memalign(alignment, size)); }
#endif
#ifdef REALLOC_KEEPS
void *realloc(void *block, size_t size) { return __libc_realloc(block, size + 1); }
#endif
#ifdef REALLOC_LOSES
void *realloc(void *block, size_t size) {
    char *moved = __libc_realloc(block, size);
    if (block != NULL && moved != NULL && size > 100)
        moved[40] ^= 1;
    return moved;
}
#endif
#ifdef SHRINKS_BY_COPYING
extern size_t malloc_usable_size(void *);
// Before it shrinks a block, it allocates as much as the block has.
void *realloc(void *block, size_t size) {
    size_t old = block == NULL ? 0 : malloc_usable_size(block);
    if (size < old) {
        void *beside = __libc_malloc(old);
        if (beside == NULL)
            return NULL;
        __libc_free(beside);
    }
    return __libc_realloc(block, size);
}
#endif
#ifdef WRITES_ON_ERROR
int posix_memalign(void **place, size_t alignment, size_t size) {
    *place = NULL;
    if (alignment < 8 || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    *place = __libc_memalign(alignment, size);
    return *place == NULL ? ENOMEM : 0;
}
#endif
#ifdef MISALIGNED
int posix_memalign(void **place, size_t alignment, size_t size) {
    (void)alignment;
    *place = __libc_malloc(size);
    return 0;
}
#endif
#ifdef NOT_PAGES
void *valloc(size_t size) { return __libc_malloc(size); }
#endif
#ifdef TOO_USABLE
size_t malloc_usable_size(void *block) { return block == NULL ? 0 : 5; }
#endif
#ifdef UNUSABLE
size_t malloc_usable_size(void *block) { return (void)block, 0; }
#endif
#ifdef ALIGNMENT_REFUSED
void *memalign(size_t alignment, size_t size) {
    void *block = __libc_memalign(alignment, size);
    if (alignment >> 62 != 0)
        errno = EINVAL;
    return block;
}
#endif
#ifdef UNINFORMED
int mallopt(int option, int value) { return option == value; }
#endif

// Basic checks need these names, so the library has them with every fault.
#if !defined NOT_ZEROED && !defined OVERFLOWS && !defined DIES
void *calloc(size_t many, size_t size) { return __libc_calloc(many, size); }
#endif
#if !defined REALLOC_KEEPS && !defined REALLOC_LOSES && !defined SHRINKS_BY_COPYING
void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }
#endif
#ifndef DIES
void *aligned_alloc(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
#ifndef ALIGNMENT_REFUSED
void *memalign(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
#endif
#endif
#if !defined WRITES_ON_ERROR && !defined MISALIGNED
int posix_memalign(void **place, size_t alignment, size_t size) {
    int before = errno;
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    void *block = __libc_memalign(alignment, size);
    errno = before;
    if (block == NULL)
        return ENOMEM;
    *place = block;
    return 0;
}
#endif
#if !defined TOO_USABLE && !defined UNUSABLE
size_t malloc_usable_size(void *block) {
    size_t (*next)(void *) = (size_t (*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    return next(block);
}
#endif

#if defined NEW_IS_NULL || defined NEW_ALIGNS_NOT || defined NOTHROW_DIES
void *_Znwm(size_t size) { return __libc_malloc(size); }
#endif
#ifdef NEW_ALIGNS_NOT
void *_ZnwmSt11align_val_t(size_t size, size_t alignment) { return (void)alignment, __libc_malloc(size); }
#endif
#ifdef NOTHROW_DIES
void *_ZnwmRKSt9nothrow_t(size_t size, void *tag) {
    void *block = __libc_malloc(size);
    if (block == NULL)
        abort();
    return (void)tag, block;
}
#endif
#ifdef NOTHROW_IGNORES
void *_ZnwmRKSt9nothrow_t(size_t size, void *tag) { return (void)tag, __libc_malloc(size); }
#endif
