/* A program in C: malloc, calloc, realloc and free, and the guarantees of the standard. */

#include "basic.h"

#include <errno.h>
#include <malloc.h>

#define OBJECTS 20000

struct object {
    unsigned char *memory;
    size_t size;
    unsigned char mark;
};

static struct object objects[OBJECTS];

static void verify(const struct object *object)
{
    for (size_t i = 0; i < object->size; i += object->size > 4096 ? 509 : 1)
        REQUIRE(object->memory[i] == object->mark, "byte %zu of an object of %zu changed", i,
                object->size);
    REQUIRE(object->size == 0 || object->memory[object->size - 1] == object->mark,
            "the last byte of an object of %zu changed", object->size);
}

static void require_alignment(const void *memory, size_t size)
{
    size_t needed = size >= 16 ? 16 : size >= 8 ? 8 : 1;
    REQUIRE((uintptr_t)memory % needed == 0, "an object of %zu is not aligned to %zu", size,
            needed);
}

static void allocate(struct object *object, uint64_t *state)
{
    size_t size = some_size(state);
    int zeroed = next_number(state) % 4 == 0;
    unsigned char *memory = zeroed ? calloc(1, size) : malloc(size);
    REQUIRE(memory != NULL, "no memory for an object of %zu", size);
    require_alignment(memory, size);
    REQUIRE(malloc_usable_size(memory) >= size, "malloc_usable_size is less than asked for");
    for (size_t i = 0; zeroed && i < size; i++)
        REQUIRE(memory[i] == 0, "calloc gave memory that is not zero");
    *object = (struct object){ memory, size, (unsigned char)next_number(state) };
    memset(memory, object->mark, size);
}

static void resize(struct object *object, uint64_t *state)
{
    size_t size = some_size(state);
    size_t kept = size < object->size ? size : object->size;
    unsigned char *memory = realloc(object->memory, size);
    REQUIRE(memory != NULL, "no memory to resize to %zu", size);
    require_alignment(memory, size);
    *object = (struct object){ memory, kept, object->mark };
    verify(object);
    object->size = size;
    memset(memory, object->mark, size);
}

static void churn(void)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 400000; i++) {
        struct object *object = &objects[next_number(&state) % OBJECTS];
        if (object->memory == NULL) {
            allocate(object, &state);
        } else if (next_number(&state) % 4 == 0) {
            resize(object, &state);
        } else {
            verify(object);
            free(object->memory);
            object->memory = NULL;
        }
    }
    for (int i = 0; i < OBJECTS; i++) {
        if (objects[i].memory != NULL) verify(&objects[i]);
        free(objects[i].memory);
    }
}

static void corner_cases(void)
{
    /* volatile hides the sizes from the compiler. */
    volatile size_t zero = 0;
    free(NULL);
    void *empty = malloc(zero), *other = malloc(zero);
    REQUIRE(empty == NULL || empty != other, "malloc(0) gave the same address twice");
    free(empty);
    free(other);
    void *fresh = realloc(NULL, 100);
    REQUIRE(fresh != NULL, "realloc of NULL gave nothing");
    free(fresh);
    errno = E2BIG;
    void *large = malloc(8 << 20);
    REQUIRE(large != NULL, "no memory for 8 MiB");
    free(large);
    REQUIRE(errno == E2BIG, "free changed errno");
}

static void library_calls(void)
{
    char *text = NULL, *line = NULL;
    size_t room = 0;
    REQUIRE(asprintf(&text, "%0500d", 7) == 500, "asprintf failed");
    char *copy = strdup(text);
    REQUIRE(copy != NULL && strcmp(copy, text) == 0, "strdup gave another text");
    FILE *file = fmemopen(copy, 500, "r");
    REQUIRE(file != NULL && getline(&line, &room, file) == 500, "getline failed");
    fclose(file);
    free(line);
    free(copy);
    free(text);
}

int main(void)
{
    require_allocator();
    corner_cases();
    library_calls();
    churn();
    REQUIRE(peak_mib() < 1024, "%ld MiB were resident for less than 200 MiB of objects", peak_mib());
    return 0;
}
