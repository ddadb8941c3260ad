/* Products of matrices by BLAS, between launches of kernels. Its functions are those that NumPy calls,
 * of CBLAS's interface: https://www.netlib.org/blas/#_cblas. */
#include "runtime.h"

#include <string.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112, UPPER = 121 };
/* product.flags: two bits, and the bytes of an element from bit 8 on */
enum { INTEGERS_64 = 1, COMPLEX = 2, BYTES = 8 };

/* A matrix of a stack; strides are in elements. */
typedef struct matrix {
    int64_t offset, down, across, next; /* offset in bytes; strides between rows, columns, matrices */
} matrix;

/* The words of a launch (runtime/blas.py). The results are contiguous. */
typedef struct product {
    const char *left, *right;
    char *out;
    matrix of_left, of_right;
    int64_t count, rows, columns, depth;
    uint64_t gemm, gemv, syrk, flags;
} product;

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Copies the upper triangle of n x n elements to the lower one. */
static void mirror(char *out, size_t n, size_t bytes) {
    for (size_t i = 1; i < n; i++)
        for (size_t j = 0; j < i; j++)
            memcpy(out + (i * n + j) * bytes, out + (j * n + i) * bytes, bytes);
}

static bool is_transposed(const matrix *m, int64_t columns) { return m->across != 1 && columns > 1; }

/* How far the rows of the stored matrix are from each other. */
static int64_t leading(const matrix *m, int64_t rows, int64_t columns) {
    return is_transposed(m, columns) ? larger(m->across, rows) : larger(m->down, columns);
}

/* The arguments of a function of CBLAS, without the order (rows), alpha (1) and beta (0). */
typedef struct arguments {
    int left_trans, right_trans;
    int64_t m, n, k, left_stride, right_stride, out_stride;
    const void *left, *right;
    void *out;
} arguments;

/* Calls of the three functions for a type: of scalars, which are numbers or point to them, and of
 * integers. */
#define DEFINE_CALLS(name, scalar, integer, one, zero)                                                  \
    static void gemm_##name(uint64_t function, const arguments *x) {                                    \
        typedef void gemm(int, int, int, integer, integer, integer, scalar, const void *, integer,      \
                          const void *, integer, scalar, void *, integer);                              \
        ((gemm *)function)(ROW_MAJOR, x->left_trans, x->right_trans, (integer)x->m, (integer)x->n,      \
                           (integer)x->k, one, x->left, (integer)x->left_stride, x->right,              \
                           (integer)x->right_stride, zero, x->out, (integer)x->out_stride);             \
    }                                                                                                   \
    static void gemv_##name(uint64_t function, const arguments *x) {                                    \
        typedef void gemv(int, int, integer, integer, scalar, const void *, integer, const void *,      \
                          integer, scalar, void *, integer);                                            \
        ((gemv *)function)(ROW_MAJOR, x->left_trans, (integer)x->m, (integer)x->n, one, x->left,        \
                           (integer)x->left_stride, x->right, (integer)x->right_stride, zero, x->out, 1); \
    }                                                                                                   \
    static void syrk_##name(uint64_t function, const arguments *x) {                                    \
        typedef void syrk(int, int, int, integer, integer, scalar, const void *, integer, scalar,       \
                          void *, integer);                                                             \
        ((syrk *)function)(ROW_MAJOR, UPPER, x->left_trans, (integer)x->n, (integer)x->k, one, x->left, \
                           (integer)x->left_stride, zero, x->out, (integer)x->out_stride);              \
    }

static const double one_[2] = {1, 0}, zero_[2] = {0, 0};
static const float onef_[2] = {1, 0}, zerof_[2] = {0, 0};
DEFINE_CALLS(s32, float, int32_t, 1.0f, 0.0f)
DEFINE_CALLS(s64, float, int64_t, 1.0f, 0.0f)
DEFINE_CALLS(d32, double, int32_t, 1.0, 0.0)
DEFINE_CALLS(d64, double, int64_t, 1.0, 0.0)
DEFINE_CALLS(c32, const void *, int32_t, onef_, zerof_)
DEFINE_CALLS(c64, const void *, int64_t, onef_, zerof_)
DEFINE_CALLS(z32, const void *, int32_t, one_, zero_)
DEFINE_CALLS(z64, const void *, int64_t, one_, zero_)
#undef DEFINE_CALLS

typedef struct calls {
    void (*gemm)(uint64_t, const arguments *), (*gemv)(uint64_t, const arguments *),
        (*syrk)(uint64_t, const arguments *);
} calls;

/* By type and integers. */
static const calls *calls_of(uint64_t flags) {
#define CALLS(name) {gemm_##name, gemv_##name, syrk_##name}
    static const calls of[4][2] = {
        {CALLS(s32), CALLS(s64)},
        {CALLS(d32), CALLS(d64)},
        {CALLS(c32), CALLS(c64)},
        {CALLS(z32), CALLS(z64)},
    };
#undef CALLS
    const bool is_complex = flags & COMPLEX, is_double = flags >> BYTES == (is_complex ? 16 : 8);
    return &of[2 * is_complex + is_double][flags & INTEGERS_64];
}

/* A matrix times a vector whose elements are `step` apart. */
static void multiply_vector(const product *p, const calls *calls, const matrix *m, const char *data,
                            int64_t rows, const char *vector, int64_t step, char *out) {
    const bool is_stored = !is_transposed(m, p->depth);
    calls->gemv(p->gemv, &(arguments){
                             .left_trans = is_stored ? NO_TRANS : TRANS,
                             .m = is_stored ? rows : p->depth,
                             .n = is_stored ? p->depth : rows,
                             .left = data,
                             .left_stride = leading(m, rows, p->depth),
                             .right = vector,
                             .right_stride = larger(step, 1),
                             .out = out,
                         });
}

static void multiply(const product *p, const calls *calls, const char *left, const char *right, char *out) {
    const matrix *a = &p->of_left, *b = &p->of_right;
    const matrix b_transposed = {.down = b->across, .across = b->down};
    if (p->columns == 1) return multiply_vector(p, calls, a, left, p->rows, right, b->down, out);
    if (p->rows == 1)
        return multiply_vector(p, calls, &b_transposed, right, p->columns, left, a->across, out);
    const arguments arguments = {
        .left_trans = is_transposed(a, p->depth) ? TRANS : NO_TRANS,
        .right_trans = is_transposed(b, p->columns) ? TRANS : NO_TRANS,
        .m = p->rows,
        .n = p->columns,
        .k = p->depth,
        .left = left,
        .left_stride = leading(a, p->rows, p->depth),
        .right = right,
        .right_stride = leading(b, p->depth, p->columns),
        .out = out,
        .out_stride = p->columns,
    };
    const bool is_symmetric = left == right && p->rows == p->columns && a->down == b_transposed.down &&
                              a->across == b_transposed.across;
    if (!is_symmetric) return calls->gemm(p->gemm, &arguments);
    calls->syrk(p->syrk, &arguments);
    mirror(out, (size_t)p->rows, p->flags >> BYTES);
}

/* See mtl_call. */
MTL_EXPORT void mtl_blas_product(const uint64_t *words) {
    const product *p = (const void *)words;
    const calls *calls = calls_of(p->flags);
    const int64_t bytes = (int64_t)(p->flags >> BYTES);
    const char *left = p->left + p->of_left.offset, *right = p->right + p->of_right.offset;
    char *out = p->out;
    for (int64_t i = 0; i < p->count; i++) {
        multiply(p, calls, left, right, out);
        left += p->of_left.next * bytes;
        right += p->of_right.next * bytes;
        out += p->rows * p->columns * bytes;
    }
}
