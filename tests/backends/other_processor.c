/* Runs kernels of another processor, for test_other_processors.py: each launch of the table that the
 * test writes into launches.h, with its results to standard output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

typedef struct launch {
    mtl_entry *kernel;
    unsigned grid[3], group[3];
    int u;
} launch;

#include "launches.h" /* ints, floats, launches, OWNED */

/* Threadgroup variables: one threadgroup runs at a time. */
typedef struct control_block {
    size_t size, alignment;
    void *memory, *initial_value;
} control_block;

void *__emutls_get_address(control_block *block) {
    if (!block->memory) block->memory = calloc(1, (block->size + 127) / 64 * 64);
    return block->memory;
}

static void run(const launch *l) {
    unsigned threads = l->grid[0] * l->grid[1] * l->grid[2];
    int *out = calloc(threads * OWNED, sizeof *out);
    float *fout = calloc(threads * OWNED, sizeof *fout);
    int u = l->u;
    void *arguments[16] = {out, fout, ints, floats, &u};
    mtl_launch what = {.arguments = arguments};
    mtl_range range = {.threadgroup_memory = aligned_alloc(64, 65536)};
    for (int axis = 0; axis < 3; axis++) {
        what.threads_per_grid[axis] = l->grid[axis];
        what.threads_per_threadgroup[axis] = l->group[axis];
        what.threadgroups_per_grid[axis] = (l->grid[axis] + l->group[axis] - 1) / l->group[axis];
    }
    const unsigned *groups = what.threadgroups_per_grid;
    for (unsigned i = 0; i < groups[0] * groups[1] * groups[2]; i++) {
        unsigned place[3] = {i % groups[0], i / groups[0] % groups[1], i / groups[0] / groups[1]};
        for (int axis = 0; axis < 3; axis++) {
            unsigned left = l->grid[axis] - place[axis] * l->group[axis];
            range.threadgroup[axis] = place[axis];
            range.size[axis] = range.last[axis] = left < l->group[axis] ? left : l->group[axis];
        }
        l->kernel(&what, &range);
    }
    fwrite(out, sizeof *out, threads * OWNED, stdout);
    fwrite(fout, sizeof *fout, threads * OWNED, stdout);
}

int main(void) {
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) run(&launches[i]);
    return 0;
}
