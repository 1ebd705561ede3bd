/* The cheapest conceivable allocator, which shows the allocator's share of a program's time: the
   time that a program takes under this one is about the time that no allocator can save.

   Each thread keeps a last-in-first-out list for every size (in steps of 16 bytes up to 1 KiB, then
   of an eighth of a power of two). malloc pops the head of a list, and free pushes a block on the
   freeing thread's list. There are no locks and no checks, and memory is never returned to the
   system.

   Memory comes from prefaulted chunks, cut into spans of 64 KiB. A span holds blocks of one size,
   or the beginning of one large block; its header identifies the size. Blocks have no headers,
   which would occupy space in the processor's caches:

       | span header | block | block | block | ...        each span at a multiple of 64 KiB

   This allocator is only a yardstick: if one thread frees memory that another thread allocates, its
   memory grows without bound. */

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)

enum {
    STEP = 16,
    STEPPED_POWER = 10,
    STEPPED = 1 << STEPPED_POWER, /* maximum size that is rounded to a step */
    STEPPED_LISTS = STEPPED / STEP,
    EIGHTHS = 8,
    LISTS = STEPPED_LISTS + 1 + (64 - STEPPED_POWER) * EIGHTHS,
    SMALL = 8192,                 /* maximum size with several blocks in a span */
    MOST_ALIGNED = 4096,          /* maximum alignment of a small block */
};

#define SPAN ((size_t)64 << 10)
#define HUGE_PAGE ((size_t)2 << 20)
#define FIRST_CHUNK ((size_t)512 << 10)
#define LARGEST_CHUNK ((size_t)8 << 20)
/* A larger block gets its own mapping, whose pages are faulted in on first touch, because a
   program may request far more than it uses. */
#define ALONE ((size_t)4 << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23    /* since Linux 5.14; before, first touch faults pages in */
#endif

struct span {
    uint32_t list;
    size_t room;                  /* usable bytes of a block, from its aligned address if any */
    void *base;                   /* block that contains an aligned address; NULL if none does */
    char pad[40];
};

/* Link in the memory of a free block. */
struct block {
    struct block *next;
};

struct heap {
    struct block *lists[LISTS];
    char *fresh[LISTS];           /* position of the next new block of a small list */
    char *fresh_end[LISTS];
    char *chunk;                  /* position of the next new span */
    size_t left;                  /* remaining bytes of the chunk */
    size_t chunk_size;
    struct heap *next;            /* next heap of a thread that has ended */
};

/* initial-exec avoids a call for the address. The library is loaded at program start. */
static __thread struct heap *my_heap __attribute__((tls_model("initial-exec")));

static struct heap *idle_heaps;
static char idle_lock;
static pthread_key_t thread_end;
static int has_thread_end;

/* Returns the span of a block. Subtracts 1, because the span of a large block at a multiple of
   64 KiB is the span before that address. */
static struct span *span_of(void *memory)
{
    return (struct span *)(((uintptr_t)memory - 1) & ~(SPAN - 1));
}

/* Tries the lock only once, because fork may have left it locked forever. A failure only wastes
   a heap. */
static int try_idle_lock(void)
{
    return !__atomic_test_and_set(&idle_lock, __ATOMIC_ACQUIRE);
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Maps memory that begins at a multiple of `alignment`. */
static char *map_aligned(size_t bytes, size_t alignment)
{
    char *memory = map(bytes + alignment);
    if (memory == NULL) return NULL;
    return (char *)(((uintptr_t)memory + alignment - 1) & ~(uintptr_t)(alignment - 1));
}

/* Returns spans that were never used. */
static char *new_spans(struct heap *heap, size_t bytes)
{
    if (bytes > ALONE) return map_aligned(bytes, SPAN);
    if (bytes > heap->left) {
        int saved = errno;
        while (heap->chunk_size < bytes) heap->chunk_size *= 2;
        size_t size = heap->chunk_size;
        char *chunk = map_aligned(size, size < HUGE_PAGE ? SPAN : HUGE_PAGE);
        if (chunk == NULL) return NULL;
        if (size >= HUGE_PAGE) madvise(chunk, size, MADV_HUGEPAGE);
        madvise(chunk, size, MADV_POPULATE_WRITE);
        errno = saved;
        heap->chunk = chunk;
        heap->left = size;
        if (size < LARGEST_CHUNK) heap->chunk_size *= 2;
    }
    char *spans = heap->chunk;
    heap->chunk += bytes;
    heap->left -= bytes;
    return spans;
}

/* Returns this thread's heap: one that an ended thread left, or a new one. */
__attribute__((noinline)) static struct heap *enter(void)
{
    struct heap *heap = NULL;
    if (try_idle_lock()) {
        heap = idle_heaps;
        if (heap != NULL) idle_heaps = heap->next;
        __atomic_clear(&idle_lock, __ATOMIC_RELEASE);
    }
    if (heap == NULL) {
        heap = map(sizeof *heap);
        if (heap == NULL) return NULL;
        heap->chunk_size = FIRST_CHUNK;
    }
    my_heap = heap;
    /* pthread_setspecific may allocate, which uses the heap assigned above. */
    if (has_thread_end) pthread_setspecific(thread_end, heap);
    return heap;
}

static void leave(void *ended)
{
    struct heap *heap = ended;
    my_heap = NULL;
    if (!try_idle_lock()) return;
    heap->next = idle_heaps;
    idle_heaps = heap;
    __atomic_clear(&idle_lock, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void watch_threads(void)
{
    has_thread_end = pthread_key_create(&thread_end, leave) == 0;
}

/* Returns the list for a size, and the room of its blocks. */
static inline uint32_t list_of(size_t size, size_t *room)
{
    if (LIKELY(size <= STEPPED)) {
        size_t steps = size == 0 ? 1 : (size + STEP - 1) / STEP;
        *room = steps * STEP;
        return (uint32_t)steps;
    }
    int power = 63 - __builtin_clzl(size - 1);
    size_t eighth = (size_t)1 << (power - 3);
    *room = (size + eighth - 1) & ~(eighth - 1);
    return STEPPED_LISTS + 1 + (power - STEPPED_POWER) * EIGHTHS
        + (uint32_t)((*room - ((size_t)1 << power)) / eighth - 1);
}

/* Returns the offset of the first block in a small span: the largest power of two that divides
   the block size, so that all blocks are aligned to it. */
static size_t first_of(size_t room)
{
    size_t power = room & -room;
    if (power < sizeof(struct span)) return sizeof(struct span);
    return power < MOST_ALIGNED ? power : MOST_ALIGNED;
}

/* Returns a block of memory that was never used, and is therefore zero. */
__attribute__((noinline)) static void *new_block(struct heap *heap, uint32_t list, size_t room)
{
    size_t first = room <= SMALL ? first_of(room) : sizeof(struct span);
    char *fresh = heap->fresh[list];
    if (room > SMALL || (size_t)(heap->fresh_end[list] - fresh) < room) {
        size_t bytes = room <= SMALL ? SPAN : (first + room + SPAN - 1) & ~(SPAN - 1);
        char *spans = new_spans(heap, bytes);
        if (spans == NULL) return NULL;
        struct span *span = (struct span *)spans;
        span->list = list;
        span->room = room;
        fresh = spans + first;
        if (room > SMALL) return fresh;
        heap->fresh_end[list] = spans + SPAN;
    }
    heap->fresh[list] = fresh + room;
    return fresh;
}

/* Returns memory for `size` bytes. Sets `is_new` if the memory is known to be zero. */
static inline void *take(size_t size, int *is_new)
{
    *is_new = 0;
    if (size > PTRDIFF_MAX / 2) {
        errno = ENOMEM;
        return NULL;
    }
    struct heap *heap = my_heap;
    if (!LIKELY(heap != NULL)) {
        heap = enter();
        if (heap == NULL) return NULL;
    }
    size_t room;
    uint32_t list = list_of(size, &room);
    struct block *block = heap->lists[list];
    if (LIKELY(block != NULL)) {
        heap->lists[list] = block->next;
        return block;
    }
    *is_new = 1;
    return new_block(heap, list, room);
}

EXPORT void *malloc(size_t size)
{
    int is_new;
    return take(size, &is_new);
}

/* Returns the large block that contains an aligned address, and restores its full room. */
__attribute__((noinline)) static void *whole_block(struct span *span, void *aligned)
{
    void *base = span->base;
    span->base = NULL;
    span->room += (size_t)((char *)aligned - (char *)base);
    return base;
}

EXPORT void free(void *memory)
{
    if (memory == NULL) return;
    struct heap *heap = my_heap;
    if (!LIKELY(heap != NULL)) {
        int saved = errno;
        heap = enter();
        errno = saved;
        if (heap == NULL) return;
    }
    struct span *span = span_of(memory);
    if (!LIKELY(span->base == NULL)) {
        memory = whole_block(span, memory);
        span = span_of(memory);
    }
    struct block *block = memory;
    block->next = heap->lists[span->list];
    heap->lists[span->list] = block;
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    int is_new;
    void *memory = take(bytes, &is_new);
    if (memory != NULL && !is_new) memset(memory, 0, bytes);
    return memory;
}

EXPORT size_t malloc_usable_size(void *memory)
{
    if (memory == NULL) return 0;
    return span_of(memory)->room;
}

EXPORT void *realloc(void *memory, size_t size)
{
    if (memory == NULL) return malloc(size);
    if (size == 0) {
        free(memory);
        return NULL;
    }
    size_t room = malloc_usable_size(memory);
    if (size <= room) return memory;
    void *moved = malloc(size);
    if (moved == NULL) return NULL;
    memcpy(moved, memory, room);
    free(memory);
    return moved;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
        errno = EINVAL;
        return NULL;
    }
    if (alignment <= STEP) return malloc(size);
    size_t bytes = size < alignment ? alignment : size;
    if (__builtin_add_overflow(bytes, alignment, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    size_t whole = (bytes - 1) & ~(alignment - 1);
    if (whole > STEPPED && whole <= SMALL) whole = (size_t)1 << (64 - __builtin_clzl(whole - 1));
    if (alignment <= MOST_ALIGNED && whole <= SMALL) return malloc(whole);
    char *base = malloc(bytes > SMALL ? bytes : SMALL + 1);
    if (base == NULL) return NULL;
    char *aligned = (char *)(((uintptr_t)base + alignment - 1) & ~(uintptr_t)(alignment - 1));
    if (aligned == base) return base;
    /* `span` is the block's own header, or lies in the skipped part of the block. */
    struct span *span = span_of(aligned);
    span->room = span_of(base)->room - (size_t)(aligned - base);
    span->base = base;
    return aligned;
}
