/* Copies of buffers that belong to one thread of the system; see private_buffers.c. */
#ifndef METALLOID_CPU_PRIVATE_BUFFERS_H
#define METALLOID_CPU_PRIVATE_BUFFERS_H

#include "runtime.h"

typedef struct mtl_private_buffers {
    char *memory; /* NULL if the job has none */
    size_t bytes;
    mtl_launch launch;
} mtl_private_buffers;

const mtl_launch *mtl_private_begin(mtl_private_buffers *self, const mtl_job *job);
void mtl_private_end(mtl_private_buffers *self, const mtl_job *job);

#endif
