/* Use of lgalloc in a C program. Returns the line that failed, or 0. */
#include "heapdrome_lgalloc.h"

#include <errno.h>
#include <string.h>

#define MUST(what) do { if (!(what)) return __LINE__; } while (0)

static const size_t unit = 2u << 20;

int main(void)
{
    heapdrome_lgalloc_config config;
    heapdrome_lgalloc_statistics now;
    heapdrome_region region = { NULL, 0 };

    heapdrome_lgalloc_default_config(&config);
    MUST(config.huge_pages == 1 && config.thread_budget == 16 * unit);
    config.thread_budget = 4 * unit;
    config.dirty_cap = 8 * unit;
    config.huge_pages = 0;
    heapdrome_lgalloc_configure(&config);

    MUST(heapdrome_lgalloc_allocate(SIZE_MAX, &region) == ENOMEM && region.start == NULL);
    MUST(heapdrome_lgalloc_allocate(100, &region) == 0);
    MUST(region.bytes == unit && (uintptr_t)region.start % unit == 0);
    memset(region.start, 7, region.bytes);
    MUST(heapdrome_lgalloc_resize(&region, 3 * unit) == 0);
    MUST(region.bytes == 4 * unit && ((char *)region.start)[unit - 1] == 7);
    MUST(heapdrome_lgalloc_prefetch(region, 4095, 2) == 0);
    MUST(heapdrome_lgalloc_prefetch(region, 1, region.bytes) == ERANGE);
    MUST(heapdrome_lgalloc_purge(region, 1, unit - 1) == 0);
    MUST(((char *)region.start)[0] == 7 && ((char *)region.start)[unit - 1] == 0);
    MUST(heapdrome_lgalloc_purge(region, SIZE_MAX, 2) == ERANGE);
    heapdrome_lgalloc_deallocate(region);

    heapdrome_lgalloc_stats(&now);
    MUST(now.classes[0].bytes == unit && now.classes[HEAPDROME_LGALLOC_CLASSES - 1].bytes > unit);
    MUST(now.classes[0].allocations == 1 && now.areas == 1);
    MUST(now.dirty_bytes > 0 && now.dirty_bytes <= config.dirty_cap && now.purge_failures == 0);
    heapdrome_lgalloc_empty();
    heapdrome_lgalloc_stats(&now);
    MUST(now.dirty_bytes == 0 && now.purged_bytes >= 4 * unit);
    return 0;
}
