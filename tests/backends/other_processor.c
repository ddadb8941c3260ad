/* Runs kernels of another processor, for test_other_processors.py: each launch of the table that the
 * test writes into launches.h, by our runtime, with its results to standard output. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime.h"

typedef struct launch {
    mtl_entry *kernel;
    unsigned grid[3], group[3];
    int u;
    unsigned flags, variable_bytes;
} launch;

#include "launches.h" /* ints, floats, launches, OWNED */

int mtl_configure(uint32_t threads);
int mtl_run(const mtl_descriptor *descriptor, mtl_outcome *outcome);

static int run(const launch *l) {
    unsigned threads = l->grid[0] * l->grid[1] * l->grid[2];
    int *out = calloc(threads * OWNED, sizeof *out);
    float *fout = calloc(threads * OWNED, sizeof *fout);
    int u = l->u;
    void *arguments[16] = {out, fout, ints, floats, &u};
    mtl_descriptor *what = calloc(1, sizeof *what + 16 * sizeof(uint64_t));
    mtl_outcome outcome = {0};
    what->entry = (uint64_t)l->kernel;
    what->flags = l->flags;
    what->argument_count = 16;
    what->variable_bytes = l->variable_bytes;
    for (int axis = 0; axis < 3; axis++) {
        what->grid[axis] = l->grid[axis];
        what->group[axis] = l->group[axis];
    }
    for (int i = 0; i < 16; i++) what->arguments[i] = (uint64_t)arguments[i];
    mtl_run(what, &outcome);
    fwrite(out, sizeof *out, threads * OWNED, stdout);
    fwrite(fout, sizeof *fout, threads * OWNED, stdout);
    return outcome.status;
}

int main(void) {
    mtl_configure(2);
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++)
        if (run(&launches[i])) return 1;
    return 0;
}
