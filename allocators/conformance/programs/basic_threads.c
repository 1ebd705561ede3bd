/* A threaded program: threads free objects that other threads allocated, also after those other
   threads have ended; threads come and go. */

#include "basic.h"

#include <pthread.h>

#define THREADS 4
#define SLOTS 4096
#define ROUNDS 150000

struct object {
    size_t size;
    unsigned char bytes[];
};

static struct object *slots[SLOTS];

static struct object *make(uint64_t *state)
{
    size_t size = some_size(state);
    struct object *object = malloc(sizeof *object + size);
    REQUIRE(object != NULL, "no memory for an object of %zu", size);
    object->size = size;
    memset(object->bytes, (int)(size & 0xff), size);
    return object;
}

static void destroy(struct object *object)
{
    if (object == NULL) return;
    unsigned char mark = (unsigned char)(object->size & 0xff);
    REQUIRE(object->bytes[0] == mark && object->bytes[object->size - 1] == mark &&
                object->bytes[object->size / 2] == mark,
            "an object of %zu that another thread allocated changed", object->size);
    free(object);
}

static void *exchange(void *argument)
{
    uint64_t state = 0x1234567 + (uint64_t)(uintptr_t)argument * 7919;
    for (int i = 0; i < ROUNDS; i++) {
        struct object *fresh = make(&state);
        size_t slot = next_number(&state) % SLOTS;
        destroy(__atomic_exchange_n(&slots[slot], fresh, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void *leave_one(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument + 1;
    for (int i = 0; i < 50; i++) free(make(&state));
    return make(&state);
}

static void short_lived(void)
{
    struct object *left[THREADS];
    for (int round = 0; round < 100; round++) {
        pthread_t threads[THREADS];
        for (uintptr_t i = 0; i < THREADS; i++)
            REQUIRE(pthread_create(&threads[i], NULL, leave_one, (void *)(i + 1)) == 0,
                    "no thread could be made");
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], (void **)&left[i]);
        for (int i = 0; i < THREADS; i++) destroy(left[i]);
    }
}

int main(void)
{
    pthread_t threads[THREADS];
    require_allocator();
    for (uintptr_t i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, exchange, (void *)i) == 0,
                "no thread could be made");
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++) destroy(slots[i]);
    short_lived();
    REQUIRE(peak_mib() < 1024, "%ld MiB were resident for less than 50 MiB of objects", peak_mib());
    return 0;
}
