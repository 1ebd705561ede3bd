#ifndef HEAPDROME_LGALLOC_H
#define HEAPDROME_LGALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Region of 2 MiB to 64 GiB. The caller must not change its fields. */
typedef struct {
    void *start;
    size_t bytes;
} heapdrome_region;

/* Allocates at least `bytes`. The contents are undefined. Returns 0, or ENOMEM; on errors, *region
   is unchanged. */
int heapdrome_lgalloc_allocate(size_t bytes, heapdrome_region *region);

/* Frees a region. Does nothing if its start is NULL. Any thread may call this. */
void heapdrome_lgalloc_deallocate(heapdrome_region region);

/* Resizes a region to at least `bytes`, and keeps the contents that fit. The region may move.
   Returns 0, EINVAL (its start is NULL) or ENOMEM; on errors, the region is unchanged. */
int heapdrome_lgalloc_resize(heapdrome_region *region, size_t bytes);

/* Starts to read `length` bytes from `offset` on from swap into memory. Returns 0, EINVAL (the
   region's start is NULL), ERANGE, or the error of madvise. */
int heapdrome_lgalloc_prefetch(heapdrome_region region, size_t offset, size_t length);

/* Drops the contents of the pages that lie wholly in the `length` bytes from `offset` on, and gives
   their memory back to the system. The pages read as zero afterwards. Returns 0, ERANGE, or EINVAL
   (the region's start is NULL, or madvise refuses). */
int heapdrome_lgalloc_purge(heapdrome_region region, size_t offset, size_t length);

/* Settings of the whole process. */
typedef struct {
    size_t thread_budget;        /* maximum bytes in a thread's cache, over all classes */
    size_t dirty_cap;            /* maximum free bytes with contents, over all threads and classes */
    uint64_t stale_after_ms;     /* time after which a free region is checked for swap */
    uint64_t worker_interval_ms; /* interval of the background thread; 0: no thread */
    int huge_pages;              /* whether new areas request huge pages */
} heapdrome_lgalloc_config;

/* Writes the default settings. */
void heapdrome_lgalloc_default_config(heapdrome_lgalloc_config *config);

/* Changes all settings. Empties caches that have borrowed more than the new budget into the shared
   pool. Then returns free memory to the system until the new cap holds. */
void heapdrome_lgalloc_configure(const heapdrome_lgalloc_config *config);

/* Number of classes: 2 MiB to 64 GiB, or to 512 MiB on 32-bit systems. */
#if SIZE_MAX > 0xffffffff
#define HEAPDROME_LGALLOC_CLASSES 16
#else
#define HEAPDROME_LGALLOC_CLASSES 9
#endif

/* Statistics of one class. A region that changes its class counts as deallocated in the old class
   and as allocated in the new class. */
typedef struct {
    size_t bytes;            /* size of its regions */
    size_t allocations;
    size_t deallocations;
    size_t slow_allocations; /* for which the thread's cache had no region */
    size_t cached_regions;   /* free, in threads' caches */
    size_t dirty_regions;    /* free with contents, in the shared pool */
    size_t clean_regions;    /* free, and never used or purged */
} heapdrome_lgalloc_class_stats;

/* Statistics of the whole allocator. */
typedef struct {
    heapdrome_lgalloc_class_stats classes[HEAPDROME_LGALLOC_CLASSES];
    size_t areas;          /* number of areas of address space */
    size_t reserved_bytes; /* reserved address space */
    size_t dirty_bytes;    /* free with contents, and room that caches have borrowed */
    size_t purged_bytes;   /* returned to the system */
    size_t stale_bytes;    /* dropped because partly in swap; included in purged_bytes */
    size_t moved_bytes;    /* moved with their pages when a region grew */
    size_t copied_bytes;   /* copied because the system refused to move their pages */
    size_t purge_failures; /* number of purges that the system refused */
} heapdrome_lgalloc_statistics;

/* Writes the current statistics. */
void heapdrome_lgalloc_stats(heapdrome_lgalloc_statistics *to);

/* Returns the memory of every free region to the system. */
void heapdrome_lgalloc_empty(void);

#ifdef __cplusplus
}
#endif

#endif
