/* Sorts of rows by the functions of NumPy, between launches of kernels. */
#include "runtime.h"

#include <string.h>

/* The words of a launch (runtime/host_calls.py): of contiguous rows. */
typedef struct sort {
    const char *in;
    char *out;
    int64_t rows, length, item_bytes, descending;
    int (*function)(void *start, int64_t length, void *array);
} sort;

#define DEFINE_REVERSE(name, type)                                                                      \
    static void name(type *row, int64_t length) {                                                       \
        for (int64_t i = 0, k = length - 1; i < k; i++, k--) {                                          \
            const type first = row[i];                                                                  \
            row[i] = row[k], row[k] = first;                                                            \
        }                                                                                               \
    }
DEFINE_REVERSE(reverse_32, uint32_t)
DEFINE_REVERSE(reverse_64, uint64_t)
#undef DEFINE_REVERSE

/* See mtl_call. The functions cannot fail for numbers. */
MTL_EXPORT void mtl_sort_rows(const uint64_t *words) {
    const sort *s = (const void *)words;
    const size_t bytes = (size_t)(s->length * s->item_bytes);
    for (int64_t i = 0; i < s->rows; i++) {
        char *row = s->out + (size_t)i * bytes;
        memcpy(row, s->in + (size_t)i * bytes, bytes);
        s->function(row, s->length, 0);
        if (!s->descending) continue;
        if (s->item_bytes == 4) reverse_32((uint32_t *)row, s->length);
        else reverse_64((uint64_t *)row, s->length);
    }
}
