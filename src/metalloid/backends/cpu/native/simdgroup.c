/* The functions that kernels call to meet other threads: barriers and simdgroup functions.
 *
 * Each simdgroup function publishes its operands, waits in mtl_exchange_wait, and returns the
 * result that its rule has computed. A rule sees the lanes that take part in the call (`active`)
 * and treats the simdgroup as segments of `width` lanes: one of 32, or eight quads of 4. What the
 * rules say is the definition of these functions on the CPU:
 *
 *   - Reductions fold a segment as a balanced tree, t[i] = t[i] op t[i + d] for d = width/2 ... 1.
 *     In place of inactive lanes stands the neutral element: -0.0 for float sums, NaN for float min
 *     and max.
 *   - Inclusive prefixes are x[i] = x[i - d] op x[i] for d = 1, 2, 4 ..., with the same neutral
 *     elements. The exclusive prefix is 0 (1 for products) op the inclusive prefix of the lane
 *     before.
 *   - Float min and max are IEEE 754-2019 minimumNumber and maximumNumber: NaN loses, -0 < +0.
 *   - Shuffles from an inactive lane return 0, as on Apple's GPUs. Past the edge up, down and xor
 *     return the reader's own value. Rotations wrap at the width. shuffle and broadcast from
 *     lane >= width fail.
 *   - a b + c of matrices begins with c and adds products in the order of k, each fused with its
 *     addition, in float; inactive lanes hold zeros.
 */
#include <math.h>
#include <string.h>

#include "group.h"
#include "sanitizer/sanitizer.h"

typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;
typedef float f32;
typedef uint32_t b32;
typedef uint64_t b64;

/* Values travel as 64-bit words that hold the bytes of the type. */
#define WORDS_OF(T)                            \
    static inline uint64_t T##_word(T x) {     \
        uint64_t word = 0;                     \
        memcpy(&word, &x, sizeof x);           \
        return word;                           \
    }                                          \
    static inline T T##_value(uint64_t word) { \
        T x;                                   \
        memcpy(&x, &word, sizeof x);           \
        return x;                              \
    }
WORDS_OF(u32) WORDS_OF(i32) WORDS_OF(u64) WORDS_OF(i64) WORDS_OF(f32)

static bool is_active(const mtl_exchange *call, uint32_t lane) { return call->active >> lane & 1; }

/* ---- reductions and prefixes ---- */

/* A segment of values, neutral elements in place of inactive lanes. */
#define LOAD_SEGMENT(T, NEUTRAL)                                                               \
    T t[MTL_SIMD_WIDTH];                                                                       \
    for (uint32_t i = 0; i < width; i++) {                                                     \
        t[i] = is_active(call, base + i) ? T##_value(call->lanes[base + i].value) : (NEUTRAL); \
    }

#define REDUCE_RULE(NAME, T, COMBINE, NEUTRAL)                                        \
    static int32_t NAME##_##T(mtl_exchange *call) {                                   \
        uint32_t width = call->width;                                                 \
        for (uint32_t base = 0; base < MTL_SIMD_WIDTH; base += width) {               \
            LOAD_SEGMENT(T, NEUTRAL)                                                  \
            for (uint32_t d = width / 2; d > 0; d /= 2) {                             \
                for (uint32_t i = 0; i < d; i++) t[i] = COMBINE(T, t[i], t[i + d]);   \
            }                                                                         \
            uint64_t word = T##_word(t[0]);                                           \
            for (uint32_t i = 0; i < width; i++) call->lanes[base + i].result = word; \
        }                                                                             \
        return MTL_OK;                                                                \
    }

#define PREFIX_RULES(NAME, T, COMBINE, NEUTRAL, START)                                          \
    static int32_t prefix_inclusive_##NAME##_##T(mtl_exchange *call) {                          \
        uint32_t width = call->width;                                                           \
        for (uint32_t base = 0; base < MTL_SIMD_WIDTH; base += width) {                         \
            LOAD_SEGMENT(T, NEUTRAL)                                                            \
            for (uint32_t d = 1; d < width; d *= 2) {                                           \
                for (uint32_t i = width; i-- > d;) t[i] = COMBINE(T, t[i - d], t[i]);           \
            }                                                                                   \
            for (uint32_t i = 0; i < width; i++) call->lanes[base + i].result = T##_word(t[i]); \
        }                                                                                       \
        return MTL_OK;                                                                          \
    }                                                                                           \
    static int32_t prefix_exclusive_##NAME##_##T(mtl_exchange *call) {                          \
        prefix_inclusive_##NAME##_##T(call);                                                    \
        for (uint32_t lane = MTL_SIMD_WIDTH; lane-- > 0;) {                                     \
            T before = (START);                                                                 \
            if (lane % call->width > 0) {                                                       \
                before = COMBINE(T, before, T##_value(call->lanes[lane - 1].result));           \
            }                                                                                   \
            call->lanes[lane].result = T##_word(before);                                        \
        }                                                                                       \
        return MTL_OK;                                                                          \
    }

/* Signed integers wrap. */
#define INT_SUM(T, a, b) ((T)((u64)(a) + (u64)(b)))
#define INT_PRODUCT(T, a, b) ((T)((u64)(a) * (u64)(b)))
#define INT_MIN_OF(T, a, b) ((a) < (b) ? (a) : (b))
#define INT_MAX_OF(T, a, b) ((a) > (b) ? (a) : (b))
#define BIT_AND(T, a, b) ((a) & (b))
#define BIT_OR(T, a, b) ((a) | (b))
#define BIT_XOR(T, a, b) ((a) ^ (b))
#define FLOAT_SUM(T, a, b) ((a) + (b))
#define FLOAT_PRODUCT(T, a, b) ((a) * (b))
#define FLOAT_MIN(T, a, b) minimum_number(a, b)
#define FLOAT_MAX(T, a, b) maximum_number(a, b)

static f32 minimum_number(f32 a, f32 b) {
    if (isnan(a)) return b;
    if (isnan(b)) return a;
    if (a == b) return signbit(a) ? a : b;
    return a < b ? a : b;
}

static f32 maximum_number(f32 a, f32 b) {
    if (isnan(a)) return b;
    if (isnan(b)) return a;
    if (a == b) return signbit(a) ? b : a;
    return a > b ? a : b;
}

#define INTEGER_RULES(T, LEAST, GREATEST)     \
    REDUCE_RULE(sum, T, INT_SUM, 0)           \
    REDUCE_RULE(product, T, INT_PRODUCT, 1)   \
    REDUCE_RULE(min, T, INT_MIN_OF, GREATEST) \
    REDUCE_RULE(max, T, INT_MAX_OF, LEAST)    \
    PREFIX_RULES(sum, T, INT_SUM, 0, 0)       \
    PREFIX_RULES(product, T, INT_PRODUCT, 1, 1)

#define BIT_RULES(T)                       \
    REDUCE_RULE(and, T, BIT_AND, (T)~(T)0) \
    REDUCE_RULE(or, T, BIT_OR, 0)          \
    REDUCE_RULE(xor, T, BIT_XOR, 0)

INTEGER_RULES(i32, INT32_MIN, INT32_MAX)
INTEGER_RULES(u32, 0, UINT32_MAX)
INTEGER_RULES(i64, INT64_MIN, INT64_MAX)
INTEGER_RULES(u64, 0, UINT64_MAX)
REDUCE_RULE(sum, f32, FLOAT_SUM, -0.0f)
REDUCE_RULE(product, f32, FLOAT_PRODUCT, 1.0f)
REDUCE_RULE(min, f32, FLOAT_MIN, NAN)
REDUCE_RULE(max, f32, FLOAT_MAX, NAN)
PREFIX_RULES(sum, f32, FLOAT_SUM, -0.0f, 0.0f)
PREFIX_RULES(product, f32, FLOAT_PRODUCT, 1.0f, 1.0f)
BIT_RULES(u32)
BIT_RULES(u64)

/* ---- shuffles: each lane reads the lane that SOURCE names ---- */

/* Whether a lane that `reader` reads from takes part. */
static bool is_readable(const mtl_exchange *call, uint32_t reader, uint32_t lane) {
    if (is_active(call, lane)) return true;
    mtl_context *context = mtl_current;
    if (context->job->checked) mtl_sanitizer_inactive(context, &call->lanes[reader], lane);
    return false;
}

static uint64_t value_of(const mtl_exchange *call, uint32_t reader, uint32_t lane) {
    return is_readable(call, reader, lane) ? call->lanes[lane].value : 0;
}

/* In SOURCE: `self`, the reader's index in its segment; `reader`; `width`. A source outside the
 * segment gives the reader's own value. */
#define SHUFFLE_RULE(NAME, SOURCE)                                          \
    static int32_t NAME(mtl_exchange *call) {                               \
        uint32_t width = call->width;                                       \
        for (uint32_t lane = 0; lane < MTL_SIMD_WIDTH; lane++) {            \
            if (!is_active(call, lane)) continue;                           \
            mtl_fibre *reader = &call->lanes[lane];                         \
            uint32_t self = lane % width, source = (SOURCE);                \
            uint32_t from = source < width ? lane - self + source : lane;   \
            reader->result = value_of(call, lane, from);                    \
        }                                                                   \
        return MTL_OK;                                                      \
    }

SHUFFLE_RULE(shuffle_in_range, reader->operand)
SHUFFLE_RULE(shuffle_xor, self ^ reader->operand)
SHUFFLE_RULE(shuffle_up, self - reader->operand) /* wraps to a huge number past the edge */
SHUFFLE_RULE(shuffle_down, self + reader->operand)
SHUFFLE_RULE(shuffle_rotate_up, (self - reader->operand) % width)
SHUFFLE_RULE(shuffle_rotate_down, (self + reader->operand) % width)
SHUFFLE_RULE(broadcast_first, (uint32_t)__builtin_ctz(call->active >> (lane - self)))

static int32_t reject(mtl_exchange *call, uint32_t lane, uint32_t wrong_value, int32_t status) {
    call->failing_lane = lane;
    call->wrong_value = wrong_value;
    return status;
}

static int32_t shuffle(mtl_exchange *call) {
    for (uint32_t left = call->active; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), operand = call->lanes[lane].operand;
        if (operand >= call->width) return reject(call, lane, operand, MTL_LANE_OUT_OF_RANGE);
    }
    return shuffle_in_range(call);
}

/* shuffle_and_fill: the segment is cut into vectors of `modulo` lanes. Elements that
 * move past the edge of a vector are replaced by elements of the filling, moved likewise. */
static int32_t shift_and_fill(mtl_exchange *call, bool up) {
    for (uint32_t lane = 0; lane < MTL_SIMD_WIDTH; lane++) {
        if (!is_active(call, lane)) continue;
        mtl_fibre *reader = &call->lanes[lane];
        uint32_t modulo = reader->modulo, delta = reader->operand;
        if (modulo == 0 || modulo > call->width || (modulo & (modulo - 1))) {
            return reject(call, lane, modulo, MTL_BAD_MODULO);
        }
        uint32_t self = lane % modulo, source = up ? self - delta : self + delta;
        uint32_t from = lane - self + source % modulo;
        if (source < modulo) reader->result = value_of(call, lane, from);
        else reader->result = is_readable(call, lane, from) ? call->lanes[from].filling : 0;
    }
    return MTL_OK;
}

static int32_t shuffle_and_fill_up(mtl_exchange *call) { return shift_and_fill(call, true); }
static int32_t shuffle_and_fill_down(mtl_exchange *call) { return shift_and_fill(call, false); }

/* ---- matrices ---- */

/* Two neighbours in a row of an 8 x 8 matrix; metal_simdgroup_matrix.h has the same layout. */
typedef struct { f32 x, y; } f32x2;
WORDS_OF(f32x2)

static uint32_t matrix_row(uint32_t lane) { return (lane / 4 & 4) + (lane / 2) % 4; }
static uint32_t matrix_column(uint32_t lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }

static int32_t matrix_multiply(mtl_exchange *call) {
    f32 a[8][8] = {0}, b[8][8] = {0};
    for (uint32_t lane = 0; lane < MTL_SIMD_WIDTH; lane++) {
        if (!is_active(call, lane)) continue;
        uint32_t row = matrix_row(lane), column = matrix_column(lane);
        f32x2 left = f32x2_value(call->lanes[lane].value);
        f32x2 right = f32x2_value(call->lanes[lane].filling);
        a[row][column] = left.x, a[row][column + 1] = left.y;
        b[row][column] = right.x, b[row][column + 1] = right.y;
    }
    for (uint32_t lane = 0; lane < MTL_SIMD_WIDTH; lane++) {
        uint32_t row = matrix_row(lane), column = matrix_column(lane);
        f32x2 sum = f32x2_value(call->lanes[lane].added);
        for (uint32_t k = 0; k < 8; k++) {
            sum.x = fmaf(a[row][k], b[k][column], sum.x);
            sum.y = fmaf(a[row][k], b[k][column + 1], sum.y);
        }
        call->lanes[lane].result = f32x2_word(sum);
    }
    return MTL_OK;
}

/* ---- votes and barriers ---- */

static int32_t ballot(mtl_exchange *call) {
    uint32_t votes = 0;
    for (uint32_t left = call->active; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        if (call->lanes[lane].value) votes |= 1u << lane;
    }
    uint32_t segment = UINT32_MAX >> (MTL_SIMD_WIDTH - call->width);
    for (uint32_t lane = 0; lane < MTL_SIMD_WIDTH; lane++) {
        call->lanes[lane].result = votes >> (lane - lane % call->width) & segment;
    }
    return MTL_OK;
}

static int32_t synchronize(mtl_exchange *call) {
    (void)call;
    return MTL_OK;
}

/* ---- the exported functions ---- */

/* The next of the functions below that this thread calls is number `number` in the kernel,
 * counted from 1 in the order described in group.c. A kernel numbers either all its calls or
 * none. */
MTL_EXPORT void __msl_site(uint32_t number) {
    mtl_fibre *self = mtl_current->running;
    self->number = number;
    self->depth = 0;
}

/* That call is in a loop, whose first call is number `first`, in iteration `iteration`. The outermost
 * loop comes first. */
MTL_EXPORT void __msl_iteration(uint32_t first, uint32_t iteration) {
    mtl_fibre *self = mtl_current->running;
    if (self->depth == MTL_LOOPS) return;
    self->loops[self->depth][0] = first;
    self->loops[self->depth++][1] = iteration;
}

/* Lanes with the same call site count as together. */
#define SITE MTL_CALL_SITE

MTL_EXPORT void __msl_threadgroup_barrier(uint32_t flags) {
    /* One system thread runs the whole threadgroup: its memory is always in order. */
    if (mtl_current->job->checked) mtl_sanitizer_barrier(mtl_current, flags, false);
    mtl_barrier_wait(mtl_current, SITE);
}

MTL_EXPORT void __msl_simdgroup_barrier(uint32_t flags) {
    if (mtl_current->job->checked) mtl_sanitizer_barrier(mtl_current, flags, true);
    mtl_exchange_wait(mtl_current, synchronize, MTL_SIMD_WIDTH, SITE);
}

MTL_EXPORT uint32_t __msl_simd_lane(void) { return mtl_current->running->lane; }

MTL_EXPORT uint32_t __msl_simdgroup_index(void) {
    return (uint32_t)(mtl_current->simdgroup - mtl_current->simdgroups);
}

MTL_EXPORT f32x2 __msl_simdgroup_matrix_multiply_f32(f32 a_first, f32 a_second, f32 b_first,
                                                     f32 b_second, f32 c_first, f32 c_second) {
    mtl_context *context = mtl_current;
    context->running->value = f32x2_word((f32x2){a_first, a_second});
    context->running->filling = f32x2_word((f32x2){b_first, b_second});
    context->running->added = f32x2_word((f32x2){c_first, c_second});
    return f32x2_value(mtl_exchange_wait(context, matrix_multiply, MTL_SIMD_WIDTH, SITE));
}

#define EXPORT_UNARY(P, WIDTH, NAME, SUFFIX, T, RULE)                    \
    MTL_EXPORT T __msl_##P##_##NAME##_##SUFFIX(T value) {                \
        mtl_context *context = mtl_current;                              \
        context->running->value = T##_word(value);                       \
        return T##_value(mtl_exchange_wait(context, RULE, WIDTH, SITE)); \
    }

#define EXPORT_SHUFFLE(P, WIDTH, NAME, SUFFIX, T, RULE)                    \
    MTL_EXPORT T __msl_##P##_##NAME##_##SUFFIX(T data, uint16_t operand) { \
        mtl_context *context = mtl_current;                                \
        context->running->value = T##_word(data);                          \
        context->running->operand = operand;                               \
        return T##_value(mtl_exchange_wait(context, RULE, WIDTH, SITE));   \
    }

#define EXPORT_FILL(P, WIDTH, NAME, SUFFIX, T)                                    \
    MTL_EXPORT T __msl_##P##_##NAME##_##SUFFIX(T data, T filling, uint16_t delta, \
                                               uint16_t modulo) {                 \
        mtl_context *context = mtl_current;                                       \
        context->running->value = T##_word(data);                                 \
        context->running->filling = T##_word(filling);                            \
        context->running->operand = delta;                                        \
        context->running->modulo = modulo;                                        \
        return T##_value(mtl_exchange_wait(context, NAME, WIDTH, SITE));          \
    }

#define EXPORT_ARITHMETIC(P, WIDTH, T)                                                   \
    EXPORT_UNARY(P, WIDTH, sum, T, T, sum_##T)                                           \
    EXPORT_UNARY(P, WIDTH, product, T, T, product_##T)                                   \
    EXPORT_UNARY(P, WIDTH, min, T, T, min_##T)                                           \
    EXPORT_UNARY(P, WIDTH, max, T, T, max_##T)                                           \
    EXPORT_UNARY(P, WIDTH, prefix_inclusive_sum, T, T, prefix_inclusive_sum_##T)         \
    EXPORT_UNARY(P, WIDTH, prefix_exclusive_sum, T, T, prefix_exclusive_sum_##T)         \
    EXPORT_UNARY(P, WIDTH, prefix_inclusive_product, T, T, prefix_inclusive_product_##T) \
    EXPORT_UNARY(P, WIDTH, prefix_exclusive_product, T, T, prefix_exclusive_product_##T)

#define EXPORT_BITS(P, WIDTH, SUFFIX, T)                                          \
    EXPORT_UNARY(P, WIDTH, and, SUFFIX, T, and_##T)                               \
    EXPORT_UNARY(P, WIDTH, or, SUFFIX, T, or_##T)                                 \
    EXPORT_UNARY(P, WIDTH, xor, SUFFIX, T, xor_##T)                               \
    EXPORT_UNARY(P, WIDTH, broadcast_first, SUFFIX, T, broadcast_first)           \
    EXPORT_SHUFFLE(P, WIDTH, broadcast, SUFFIX, T, shuffle)                       \
    EXPORT_SHUFFLE(P, WIDTH, shuffle, SUFFIX, T, shuffle)                         \
    EXPORT_SHUFFLE(P, WIDTH, shuffle_xor, SUFFIX, T, shuffle_xor)                 \
    EXPORT_SHUFFLE(P, WIDTH, shuffle_up, SUFFIX, T, shuffle_up)                   \
    EXPORT_SHUFFLE(P, WIDTH, shuffle_down, SUFFIX, T, shuffle_down)               \
    EXPORT_SHUFFLE(P, WIDTH, shuffle_rotate_up, SUFFIX, T, shuffle_rotate_up)     \
    EXPORT_SHUFFLE(P, WIDTH, shuffle_rotate_down, SUFFIX, T, shuffle_rotate_down) \
    EXPORT_FILL(P, WIDTH, shuffle_and_fill_up, SUFFIX, T)                         \
    EXPORT_FILL(P, WIDTH, shuffle_and_fill_down, SUFFIX, T)

#define EXPORT_ALL(P, WIDTH)                                    \
    EXPORT_ARITHMETIC(P, WIDTH, i32)                            \
    EXPORT_ARITHMETIC(P, WIDTH, u32)                            \
    EXPORT_ARITHMETIC(P, WIDTH, i64)                            \
    EXPORT_ARITHMETIC(P, WIDTH, u64)                            \
    EXPORT_ARITHMETIC(P, WIDTH, f32)                            \
    EXPORT_BITS(P, WIDTH, b32, u32)                             \
    EXPORT_BITS(P, WIDTH, b64, u64)                             \
    MTL_EXPORT uint64_t __msl_##P##_ballot(_Bool vote) {        \
        mtl_context *context = mtl_current;                     \
        context->running->value = vote;                         \
        return mtl_exchange_wait(context, ballot, WIDTH, SITE); \
    }

EXPORT_ALL(simd, MTL_SIMD_WIDTH)
EXPORT_ALL(quad, MTL_QUAD_WIDTH)
