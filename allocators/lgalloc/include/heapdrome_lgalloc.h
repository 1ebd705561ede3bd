#ifndef HEAPDROME_LGALLOC_H
#define HEAPDROME_LGALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A region of 2 MiB to 64 GiB. Pass it back exactly as it was given. */
typedef struct {
    void *start;
    size_t bytes;
} heapdrome_region;

/* Allocates at least `bytes`. Returns 0, or ENOMEM and does not write to *region. The contents are undefined. */
int heapdrome_lgalloc_allocate(size_t bytes, heapdrome_region *region);

/* Frees a region. Any thread may call this. */
void heapdrome_lgalloc_deallocate(heapdrome_region region);

/* Grows or shrinks a region, contents kept; it may move. 0, or EINVAL (no region)
   or ENOMEM and nothing has changed. */
int heapdrome_lgalloc_resize(heapdrome_region *region, size_t bytes);

/* Begins to bring bytes into memory that may be in swap. 0, EINVAL (no region), ERANGE, or
   what madvise reports. */
int heapdrome_lgalloc_prefetch(heapdrome_region region, size_t offset, size_t length);

/* Drops the contents of bytes that are no longer needed. The pages that lie wholly among them are returned to the
/*    system and read as zero. 0, ERANGE, or EINVAL (no region, or madvise refuses). */
int heapdrome_lgalloc_purge(heapdrome_region region, size_t offset, size_t length);

/* Settings of the whole process. */
typedef struct {
    size_t thread_budget;        /* bytes that one thread keeps for itself, over all classes */
    size_t dirty_cap;            /* free bytes with contents, over all threads and classes */
    uint64_t stale_after_ms;     /* how long a free region is trusted to be in memory */
    uint64_t worker_interval_ms; /* how often a thread returns what was free for so long; 0: none */
    int huge_pages;              /* whether new areas ask for huge pages */
} heapdrome_lgalloc_config;

/* Writes the default settings. */
void heapdrome_lgalloc_default_config(heapdrome_lgalloc_config *config);

/* Changes all settings, from now on. Regions that exceed a lowered budget go to the pool that all threads share
/*    first. Memory that exceeds a lowered cap is returned to the system. */
void heapdrome_lgalloc_configure(const heapdrome_lgalloc_config *config);

/* Number of classes: 2 MiB to 64 GiB, or to 512 MiB on 32-bit systems. */
#if SIZE_MAX > 0xffffffff
#define HEAPDROME_LGALLOC_CLASSES 16
#else
#define HEAPDROME_LGALLOC_CLASSES 9
#endif

/* Statistics of one class. A region that changes its class counts as deallocated in the old class and as allocated in the new one. */
typedef struct {
    size_t bytes;            /* size of its regions */
    size_t allocations;
    size_t deallocations;
    size_t slow_allocations; /* that a thread's own cache did not serve */
    size_t cached_regions;   /* free, in caches of threads */
    size_t dirty_regions;    /* free with contents, in the shared pool */
    size_t clean_regions;    /* free without memory */
} heapdrome_lgalloc_class_stats;

/* Statistics of the whole allocator. */
typedef struct {
    heapdrome_lgalloc_class_stats classes[HEAPDROME_LGALLOC_CLASSES];
    size_t areas;          /* of address space */
    size_t reserved_bytes; /* of address space */
    size_t dirty_bytes;    /* free with contents, and what caches may still fill */
    size_t purged_bytes;   /* returned to the system, in all */
    size_t stale_bytes;    /* of those, dropped rather than read from swap */
    size_t moved_bytes;    /* moved with their pages when a region grew */
    size_t copied_bytes;   /* copied because the system would not move them */
    size_t purge_failures; /* times the system would not take memory back */
} heapdrome_lgalloc_statistics;

/* Writes the current statistics. */
void heapdrome_lgalloc_stats(heapdrome_lgalloc_statistics *to);

/* Returns the memory of every free region to the system. */
void heapdrome_lgalloc_empty(void);

#ifdef __cplusplus
}
#endif

#endif
